/** `ailsd code`: runs a piece of code in a thread's sandbox, as an agent's `execute_code` does. */
import { Option } from 'commander';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { parseSeconds } from '../sessions/options.js';

export interface CodeOptions {
  readonly language?: string;
  readonly turn?: string;
  readonly timeout?: number;
}

export function codeCommand(context: Context): Command {
  return new Command('code')
    .argument('[thread]', 'which thread; by default the one that is set')
    .argument('[file]', 'where the code is; - or nothing for standard input')
    .addOption(
      new Option('--language <name>', 'what it is written in; by default by the file, else python')
        // As the protocol has them; a test compares.
        .choices(['python', 'javascript', 'bash']),
    )
    .option('--turn <id>', 'calls of one turn share a session')
    .option('--timeout <time>', 'how long it may run: 60s by default, 10m at most', parseSeconds)
    .description('run code in the sandbox, counted and recorded as an agent’s is')
    .example('ailsd code thr_demo report.py', 'a file of this machine, run there')
    .example('echo "print(6 * 7)" | ailsd code thr_demo', 'from a pipe')
    .example('ailsd code thr_demo - --language bash --turn t1 --json < job.sh', 'for a script')
    .action(async (thread: string | undefined, file: string | undefined, options: CodeOptions) => {
      const { runCode } = await import('../code/run-code.js');
      await runCode(context, thread, file, options);
    });
}
