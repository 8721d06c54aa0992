/** Turns commander's complaints into ours: same code, same shape, the suggestion as the hint. */
import type { CommanderError } from 'commander';
import { AilsdError } from '../protocol/errors.js';
import { nearest } from './nearest.js';

export function usageError(error: CommanderError): AilsdError {
  const text = error.message.replace(/^error: /, '');
  const [first = '', ...rest] = withoutValue(text, error.code).split('\n');
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

/** What stands after the `=` of an option that nobody knows may be a secret: it is not repeated. */
function withoutValue(text: string, code: string): string {
  if (code !== 'commander.unknownOption') return text;
  return text.replace(/^(unknown option '[^'=]*)=[\s\S]*'(\n\(Did you mean [^\n]*)?$/, "$1'$2");
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
