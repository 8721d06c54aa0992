/** Turns commander's complaints into ours: same code, same shape, the suggestion as the hint. */
import type { CommanderError } from 'commander';
import { AilsdError } from '../protocol/errors.js';

export function usageError(error: CommanderError): AilsdError {
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n');
  const suggestion = /\(Did you mean (.+)\?\)/.exec(rest.join('\n'))?.[1];
  const hint = suggestion === undefined ? undefined : `did you mean ${suggestion}?`;
  return new AilsdError('USAGE', first, hint === undefined ? {} : { hint });
}
