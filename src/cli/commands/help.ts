/** `ailsd help`: on a command, or on what belongs to no single command. */
import { Argument, type Command as Commander } from 'commander';
import { AilsdError } from '../../protocol/errors.js';
import { Command } from '../command.js';
import { COMMANDS } from '../command-table.js';
import type { Context } from '../context.js';
import { printTopic, TOPIC_NAMES } from '../help-topics.js';
import { nearest } from '../nearest.js';

export function helpCommand(context: Context): Command {
  const command = new Command('help')
    .description('print help on a command or a topic')
    .addArgument(topicArgument())
    .example('ailsd help config set', 'help on a command')
    .example('ailsd help exit-codes', 'what each exit code means')
    .example('ailsd help environment', 'the variables that configure ailsd');
  return command.action((topic: string[]) => runHelp(context, topic, command.parent ?? command));
}

function topicArgument(): Argument {
  const argument = new Argument('[topic...]', 'what to print help on');
  // For the page of help and the completions; `findCommand` suggests.
  argument.argChoices = [...COMMANDS.map((command) => command.name), ...TOPIC_NAMES];
  return argument;
}

function runHelp(context: Context, topic: readonly string[], root: Commander): void {
  const [name] = topic;
  const known = TOPIC_NAMES.find((one) => one === name);
  if (known !== undefined && topic.length === 1) printTopic(known, context);
  else findCommand(root, topic).outputHelp();
}

function findCommand(root: Commander, path: readonly string[]): Commander {
  let command = root;
  for (const name of path) {
    const child = command.commands.find((one) => one.name() === name);
    if (child === undefined) throw noSuchTopic(path, name, command, command === root);
    command = child;
  }
  return command;
}

function noSuchTopic(
  path: readonly string[],
  name: string,
  command: Commander,
  isRoot: boolean,
): AilsdError {
  const names = command.commands.map((one) => one.name());
  const near = nearest(name, isRoot ? [...names, ...TOPIC_NAMES] : names);
  return new AilsdError('USAGE', `there is no help on '${path.join(' ')}'`, {
    hint: near === undefined ? 'run `ailsd help` for the list' : `did you mean ${near}?`,
  });
}
