/** The command tree: names of all commands, and the whole of the one that was asked for. */
import { VERSION } from '../protocol/version.js';
import { Command } from './command.js';
import { COMMANDS, type CommandEntry } from './command-table.js';
import type { Context } from './context.js';
import { addGlobalOptions, takesNextWord } from './global-options.js';
import { jsonText } from './output.js';

/** A tree in which `names` are loaded (or all of them) and the others are only listed. */
export async function createProgram(
  context: Context,
  names: readonly string[] | 'all',
): Promise<Command> {
  const program = new Command('ailsd')
    .description('Your terminal, files and scripts inside the sandbox an AI agent works in.')
    .usage('<command> [options]')
    .version(
      Command.look.json ? jsonText({ version: VERSION }, true) : VERSION,
      '-V, --version',
      'print the version',
    )
    .example('ailsd doctor', 'see whether this machine has what is needed')
    .example('ailsd config set url https://ailsd.example.com', 'say which server to talk to')
    .example('ailsd help environment', 'the variables; also: help exit-codes, help json');
  addGlobalOptions(program);
  for (const entry of COMMANDS) {
    const wanted = names === 'all' || names.includes(entry.name);
    const command = wanted ? addGlobalOptions((await entry.load())(context)) : listed(entry);
    program.addCommand(command.helpGroup(entry.group));
  }
  return program;
}

function listed(entry: CommandEntry): Command {
  return new Command(entry.name).description(entry.summary);
}

/** The words of a command line that are neither options nor their values. */
export function operands(argv: readonly string[]): string[] {
  const found: string[] = [];
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    if (word === '--') return [...found, ...argv.slice(index + 1)];
    if (takesNextWord(word)) index += 1;
    else if (!word.startsWith('-')) found.push(word);
  }
  return found;
}
