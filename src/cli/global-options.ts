/** The options every command takes, before or after its own name. */
import { type Command, Option } from 'commander';
import { type Environment, isOn } from './config.js';

export interface GlobalOptions {
  readonly output: string | undefined;
  readonly profile: string | undefined;
  readonly url: string | undefined;
  readonly debug: boolean;
  readonly mayAsk: boolean;
  readonly quiet: boolean;
}

const GROUP = 'Global options:';

function globalOptions(): Option[] {
  return [
    new Option('--json', 'print JSON: the same as -o json'),
    new Option('-o, --output <format>', 'how to print results').choices(['text', 'json', 'jsonl']),
    new Option('--profile <name>', 'use the settings and login of this profile'),
    new Option('--url <url>', 'talk to this server'),
    new Option('--debug', 'tell on stderr what happens, with causes of errors'),
    new Option('--no-input', 'never ask anything'),
    new Option('-q, --quiet', 'no notices on stderr, only errors'),
  ].map((option) => option.helpGroup(GROUP));
}

export function isGlobalOption(option: Option): boolean {
  return option.helpGroupHeading === GROUP;
}

/** Adds them to a command and all below it, after each one's own. */
export function addGlobalOptions<C extends Command>(command: C): C {
  for (const option of globalOptions()) command.addOption(option);
  for (const child of command.commands) addGlobalOptions(child);
  return command;
}

/** What was said anywhere on the way to a command (the nearest counts), else by a yes-or-no variable. */
export function globalOptionsOf(command: Command, environment: Environment): GlobalOptions {
  const said = (name: string): unknown => {
    for (let one: Command | null = command; one !== null; one = one.parent) {
      if (one.getOptionValueSource(name) === 'cli') return one.getOptionValue(name);
    }
    return undefined;
  };
  const text = (name: string): string | undefined => {
    const value = said(name);
    return typeof value === 'string' ? value : undefined;
  };
  const flag = (name: string, variable: string): boolean =>
    said(name) === true || isOn(environment.variable(variable));
  return {
    output: text('output') ?? (said('json') === true ? 'json' : undefined),
    profile: text('profile'),
    url: text('url'),
    debug: flag('debug', 'AILSD_DEBUG'),
    quiet: flag('quiet', 'AILSD_QUIET'),
    mayAsk: said('input') !== false && !isOn(environment.variable('AILSD_NO_INPUT')),
  };
}

/** Whether a word of a command line is followed by its value: for finding the command before anything is parsed. */
export function takesNextWord(word: string): boolean {
  return ['--output', '--profile', '--url'].includes(word) || /^-[A-Za-z]*o$/.test(word);
}

/** What a command line asks for before it is parsed, so that its own mistakes are reported in that form. */
export function outputAskedFor(argv: readonly string[]): string | undefined {
  const end = argv.indexOf('--');
  const words = end === -1 ? argv : argv.slice(0, end);
  for (const [index, word] of words.entries()) {
    if (word === '--output' || /^-[A-Za-z]*o$/.test(word)) return words[index + 1];
    const joined = /^(?:--output=|-[A-Za-np-z]*o)(.+)$/.exec(word);
    if (joined !== null) return joined[1];
  }
  return words.includes('--json') ? 'json' : undefined;
}
