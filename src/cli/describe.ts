/** A command as data: for `--help --json`, for the completions, and for whoever generates something from the tree. */
import type { Command as Commander, Option } from 'commander';
import { variableOf } from './variables.js';

export interface CommandDescription {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  readonly arguments: readonly ArgumentDescription[];
  readonly options: readonly OptionDescription[];
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly examples: readonly { readonly run: string; readonly does: string }[];
}

export interface ArgumentDescription {
  readonly name: string;
  readonly required: boolean;
  readonly variadic: boolean;
  readonly summary: string;
  readonly choices: readonly string[];
}

export interface OptionDescription {
  readonly flags: string;
  readonly short: string | null;
  readonly long: string | null;
  readonly takes_value: boolean;
  readonly summary: string;
  readonly choices: readonly string[];
  readonly variable: string | null;
}

export function describeCommand(command: Commander): CommandDescription {
  const help = command.createHelp();
  return {
    name: fullName(command),
    summary: command.description(),
    usage: help.commandUsage(command),
    arguments: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      required: argument.required,
      variadic: argument.variadic,
      summary: argument.description,
      choices: argument.argChoices ?? [],
    })),
    options: help.visibleOptions(command).map(describeOption),
    commands: help.visibleCommands(command).map((child) => ({
      name: child.name(),
      summary: child.description(),
    })),
    examples: 'examples' in command && Array.isArray(command.examples) ? command.examples : [],
  };
}

export function fullName(command: Commander): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function describeOption(option: Option): OptionDescription {
  return {
    flags: option.flags,
    short: option.short ?? null,
    long: option.long ?? null,
    takes_value: option.required || option.optional,
    summary: option.description,
    choices: option.argChoices ?? [],
    variable: variableOf(option) ?? null,
  };
}
