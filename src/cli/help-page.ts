/** How a page of help is laid out: what the command is, what stands below it, its options, and lines to paste. */
import type { Argument, Command, Help, Option } from 'commander';
import type { Style } from './style.js';

/** Below this a column of text is not worth breaking. */
const NARROWEST_COLUMN = 12;

/** Overrides for commander's help, which knows how to wrap and align. */
export function helpPage(style: Style): Partial<Help> {
  return {
    minWidthToWrap: NARROWEST_COLUMN,
    styleTitle: style.bold,
    styleSubcommandText: style.accent,
    styleOptionText: style.accent,
    subcommandTerm: (command) => command.name(),
    optionDescription: withChoices,
    argumentDescription: withChoices,
    formatHelp: (command, help) => {
      const parts = [
        `${help.styleTitle('Usage:')} ${help.commandUsage(command)}`,
        wrap(help.commandDescription(command), help),
        ...argumentPart(command, help),
        ...commandParts(command, help),
        ...optionParts(command, help),
        ...noteParts(command, help),
        ...exampleParts(command, style),
      ];
      return `${parts.join('\n\n')}\n`;
    },
  };
}

function withChoices({ description, argChoices }: Option | Argument): string {
  return argChoices === undefined ? description : `${description}: ${argChoices.join(', ')}`;
}

function wrap(text: string, help: Help): string {
  return help.boxWrap(text, help.helpWidth ?? 80);
}

function argumentPart(command: Command, help: Help): string[] {
  const items = help
    .visibleArguments(command)
    .map((one) => item(help.argumentTerm(one), help.argumentDescription(one), command, help));
  return part('Arguments:', items, help);
}

function commandParts(command: Command, help: Help): string[] {
  const groups = groupBy(help.visibleCommands(command), (one) => one.helpGroup() || 'Commands:');
  return groups.flatMap(([heading, commands]) => {
    const items = commands.map((one) =>
      item(
        help.styleSubcommandText(help.subcommandTerm(one)),
        help.subcommandDescription(one),
        command,
        help,
      ),
    );
    return part(heading, items, help);
  });
}

function optionParts(command: Command, help: Help): string[] {
  const groups = groupBy(help.visibleOptions(command), (one) => one.helpGroupHeading ?? 'Options:');
  // What is the command's own comes before what every command has.
  groups.sort(([left], [right]) => Number(left !== 'Options:') - Number(right !== 'Options:'));
  return groups.flatMap(([heading, options]) => {
    const items = options.map((one) =>
      item(help.styleOptionText(help.optionTerm(one)), help.optionDescription(one), command, help),
    );
    return part(heading, items, help);
  });
}

function noteParts(command: Command, help: Help): string[] {
  if (!('notes' in command) || !Array.isArray(command.notes)) return [];
  return command.notes.flatMap(({ heading, rows }) => {
    const items = rows.map(([term, meaning]: [string, string]) =>
      item(term, meaning, command, help),
    );
    return part(heading, items, help);
  });
}

function exampleParts(command: Command, style: Style): string[] {
  if (!('examples' in command) || !Array.isArray(command.examples)) return [];
  const lines = command.examples.map(({ run, does }) => `  ${style.dim(`# ${does}`)}\n  ${run}`);
  return lines.length === 0 ? [] : [`${style.bold('Examples:')}\n${lines.join('\n\n')}`];
}

function item(term: string, description: string, command: Command, help: Help): string {
  return help.formatItem(term, help.padWidth(command, help), description, help);
}

function part(heading: string, items: readonly string[], help: Help): string[] {
  return items.length === 0 ? [] : [[help.styleTitle(heading), ...items].join('\n')];
}

function groupBy<T>(items: readonly T[], headingOf: (item: T) => string): [string, T[]][] {
  const groups = new Map<string, T[]>();
  for (const one of items) {
    const heading = headingOf(one);
    groups.set(heading, [...(groups.get(heading) ?? []), one]);
  }
  return [...groups];
}
