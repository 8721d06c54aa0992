/** The program: parses a command line, runs the one command it names, reports what went wrong, ends with the right code. */
import { type Command as Commander, CommanderError } from 'commander';
import { VERSION } from '../protocol/version.js';
import { Command } from './command.js';
import { isOn, processEnvironment } from './config.js';
import { Context } from './context.js';
import { fullName } from './describe.js';
import { globalOptionsOf, outputAskedFor } from './global-options.js';
import { processIo, ReaderGone } from './io.js';
import { createProgram, operands } from './program.js';
import { reportError } from './report.js';
import { styleFor } from './style.js';
import { usageError } from './usage-error.js';
import { applyVariables } from './variables.js';

async function run(argv: readonly string[]): Promise<number> {
  const io = processIo();
  const context = new Context(io, processEnvironment());
  const report = async (thrown: unknown): Promise<number> => {
    const style = await styleFor(io.err, context.environment);
    const debug =
      context.debug ||
      argv.includes('--debug') ||
      isOn(context.environment.variable('AILSD_DEBUG'));
    const { endsWithRemoteCode } = context;
    return reportError(thrown, io, {
      json: wantsJson(argv, context),
      debug,
      style,
      endsWithRemoteCode,
    });
  };
  endOnUnexpected(report);
  try {
    await runCommand(argv, context);
    const code = context.signals.exitCode ?? context.exitCode;
    // Looking at that clock for the first time takes half a millisecond.
    if (context.debug) {
      context.trace(`ends with ${code} after ${Math.round(performance.now())} ms`);
    }
    return code;
  } catch (thrown) {
    if (thrown instanceof ReaderGone) return context.exitCode;
    if (context.signals.exitCode !== undefined) return context.signals.exitCode;
    if (!(thrown instanceof CommanderError)) return report(thrown);
    return thrown.exitCode === 0 ? 0 : report(usageError(thrown));
  }
}

async function runCommand(argv: readonly string[], context: Context): Promise<void> {
  const { io, environment } = context;
  const style = await styleFor(io.out, environment);
  Command.look = { columns: io.out.columns, style, json: wantsJson(argv, context) };
  const [first = '', second = ''] = operands(argv);
  const program = await createProgram(context, first === 'help' ? [first, second] : [first]);
  setWriter(program, (text) => io.out.write(text));
  program.hook('preAction', async (_, command) => {
    applyVariables(command, environment);
    await context.configure(globalOptionsOf(command, environment));
    context.trace(
      `${fullName(command)} of ${VERSION} on node ${process.version}, ${process.platform}`,
    );
  });
  await program.parseAsync(argv, { from: 'user' });
}

/** Help goes where results go, from every command of the tree. */
function setWriter(command: Commander, writeOut: (text: string) => void): void {
  command.configureOutput({ writeOut });
  for (const child of command.commands) setWriter(child, writeOut);
}

/** Asked before the command line is parsed. A setting that can't be used says nothing about the form of its error. */
function wantsJson(argv: readonly string[], context: Context): boolean {
  try {
    return (outputAskedFor(argv) ?? context.outputMode()).startsWith('json');
  } catch {
    return false;
  }
}

/** A mistake of ours in some callback: reported like any error, and the process ends. */
function endOnUnexpected(report: (thrown: unknown) => Promise<number>): void {
  const end = (thrown: unknown): void => {
    if (thrown instanceof ReaderGone) process.exit(0);
    report(thrown).then(
      (code) => process.exit(code),
      () => process.exit(1),
    );
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
}

run(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
