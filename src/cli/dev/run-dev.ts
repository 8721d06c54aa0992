/** Starts the stack, works in its sandbox, and leaves nothing behind. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { onAbort } from '../../base/abort.js';
import { AilsdError } from '../../protocol/errors.js';
import type { DevOptions } from '../commands/dev.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { jsonText } from '../output.js';
import { whileStarting } from '../sessions/while-starting.js';
import { takePlace } from './place.js';
import { openStack, type Stack } from './stack.js';

export async function runDev(
  context: Context,
  command: readonly string[],
  { thread, keep = false }: DevOptions,
): Promise<void> {
  const { io, output, signal } = context;
  const forScript = output.mode !== 'text' && command.length === 0;
  if (!forScript && command.length === 0 && !(io.inputIsTerminal && io.out.isTerminal)) {
    throw new AilsdError('NOT_A_TERMINAL', 'a shell needs a terminal', {
      hint: 'give a command (`ailsd dev -- COMMAND`), or use --json to be told how to talk to it',
    });
  }
  using place = await takePlace(context, keep);
  // A stack of its own: nothing that is set for another server counts in it.
  context.environment.hideFromChildren();
  await using stack = await whileStarting(context, 'Starting a server of your own…', () =>
    openStack(context, place.folder, thread),
  );
  place.announce({ url: stack.url, thread, config: stack.configFolder });
  if (stack.warning !== undefined) warn(context, stack.warning);
  if (forScript) {
    io.out.write(`${jsonText({ url: stack.url, thread, env: stack.env }, false)}\n`);
    await new Promise<void>((resolve) => onAbort(signal, resolve));
    return;
  }
  if (command.length === 0) introduce(context, stack, { thread, keep });
  const args = command.length === 0 ? ['attach', thread] : ['exec', thread, '--', ...command];
  context.exit(await runAilsd(context, args, stack));
  if (keep) context.output.notice(`kept in ${place.folder}; \`ailsd dev --keep\` goes on with it`);
}

function warn({ output }: Context, reason: string): void {
  output.notice(`NOT ISOLATED: what runs in this sandbox runs as you and sees your files`);
  output.notice(`  ${escapeText(reason)}; on Debian, \`apt install bubblewrap\` changes that`);
}

function introduce(
  { output }: Context,
  { url, configFolder, sandboxesFolder }: Stack,
  { thread, keep }: { readonly thread: string; readonly keep: boolean },
): void {
  output.notice(`a server of your own at ${url}, and a shell in the sandbox of thread ${thread}`);
  output.notice(`its files are below ${sandboxesFolder}${keep ? '' : ', and go when you leave'}`);
  output.notice('from another terminal:');
  output.notice(`  export AILSD_CONFIG_DIR='${configFolder}'`);
  output.notice(`  ailsd attach --observe        watch this shell`);
  output.notice(`  ailsd exec -- ls -la          run a command beside it`);
  output.notice(`  ailsd sandbox why             what keeps the sandbox alive`);
}

/** This program again, with the stack's variables and none of ours. */
function runAilsd(
  { environment, signal }: Context,
  args: readonly string[],
  { env }: Stack,
): Promise<number> {
  // Built two folders below it.
  const program = join(import.meta.dirname, '..', '..', 'bin', 'ailsd.js');
  const child = spawn(process.execPath, [program, ...args], {
    stdio: 'inherit',
    env: { ...environment.forChildren(), ...env },
  });
  const stop = onAbort(signal, () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, name) => {
      stop();
      resolve(code ?? 128 + (name === null ? 0 : constants.signals[name]));
    });
  });
}
