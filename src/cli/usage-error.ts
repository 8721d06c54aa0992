/** Turns commander's complaints into ours: same code, same shape, the suggestion as the hint. */
import type { CommanderError } from 'commander';
import { AilsdError } from '../protocol/errors.js';
import { nearest } from './nearest.js';

export function usageError(error: CommanderError): AilsdError {
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n');
  const suggestion = /\(Did you mean (.+)\?\)/.exec(rest.join('\n'))?.[1];
  if (suggestion !== undefined)
    return new AilsdError('USAGE', first, { hint: `did you mean ${suggestion}?` });
  if (error.code === 'commander.unknownOption') {
    return new AilsdError('USAGE', first, {
      hint: 'run it with --help; put -- before a value that begins with a dash',
    });
  }
  return wrongChoice(first) ?? new AilsdError('USAGE', first);
}

/** "value 'x' is invalid. Allowed choices are a, b." */
function wrongChoice(message: string): AilsdError | undefined {
  const parts = /^(.*?)value '(.*)' is invalid.* Allowed choices are (.+)\.$/.exec(message);
  if (parts === null) return undefined;
  const [, before = '', value = '', list = ''] = parts;
  const choices = list.split(', ');
  const near = nearest(value, choices);
  const where = /option '(.+?)'/.exec(before)?.[1];
  return new AilsdError('USAGE', `'${value}' is not one of ${choices.join(', ')}`, {
    hint: near === undefined ? `give ${where ?? 'it'} one of these` : `did you mean ${near}?`,
  });
}
