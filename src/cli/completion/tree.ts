/** The command tree as the completion scripts need it: a flat list, each command by its path. */
import type { Command } from 'commander';
import { describeCommand } from '../describe.js';
import { SETTING_NAMES, setting } from '../settings/table.js';

export interface CompletionNode {
  /** `/` for the program itself, `/config/get` for a command of it. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly CompletionOption[];
  /** What the positional arguments may be, by place; empty where it can't be known. */
  readonly arguments: readonly (readonly string[])[];
}

export interface Word {
  readonly name: string;
  readonly summary: string;
}

export interface CompletionOption extends Word {
  /** `-o` and `--output`, those there are. */
  readonly flags: readonly string[];
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

export function completionTree(root: Command): CompletionNode[] {
  return walk(root, '/');
}

function walk(command: Command, path: string): CompletionNode[] {
  const described = describeCommand(command);
  const node: CompletionNode = {
    path,
    commands: described.commands,
    options: described.options.map((option) => ({
      name: option.long ?? option.short ?? '',
      flags: [option.short, option.long].filter((flag) => flag !== null),
      summary: option.summary,
      takesValue: option.takes_value,
      choices: option.choices,
    })),
    arguments: described.arguments.map((argument) => argument.choices),
  };
  const below = command.commands.flatMap((child) => walk(child, join(path, child.name())));
  return [node, ...below, ...(path === SET ? settingNodes(node) : [])];
}

const SET = '/config/set';

/** What a setting may be depends on which it is: to the scripts its name is one more step on the way. */
function settingNodes({ options }: CompletionNode): CompletionNode[] {
  return SETTING_NAMES.map((name) => ({
    path: join(SET, name),
    commands: [],
    options,
    arguments: [setting(name).choices ?? []],
  }));
}

function join(path: string, name: string): string {
  return path === '/' ? `/${name}` : `${path}/${name}`;
}

/** The paths of all commands but the program itself. */
export function commandPaths(nodes: readonly CompletionNode[]): string[] {
  return nodes.map((node) => node.path).filter((path) => path !== '/');
}

/** Every flag of the tree that is followed by a value: the scripts step over that value to find the command. */
export function flagsWithValue(nodes: readonly CompletionNode[]): string[] {
  const options = nodes.flatMap((node) => node.options).filter((option) => option.takesValue);
  return [...new Set(options.flatMap((option) => option.flags))].sort();
}

/** Each option that has a fixed set of values, once. */
export function optionsWithChoices(nodes: readonly CompletionNode[]): CompletionOption[] {
  const byFlags = new Map<string, CompletionOption>();
  for (const option of nodes.flatMap((node) => node.options)) {
    if (option.choices.length > 0) byFlags.set(option.flags.join('|'), option);
  }
  return [...byFlags.values()];
}
