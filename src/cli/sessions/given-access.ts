/** Access that was negotiated elsewhere (S2 phase 0): from a file, standard input, or AILSD_SANDBOX itself. */
import type { GivenAccess } from '../../client/sessions/world.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { readInput } from '../read-input.js';

const VARIABLE = 'AILSD_SANDBOX';
const MOST_BYTES = 64 * 1024;

/** By its variable the document itself may be given too: a command line is no place for a token. */
export function sandboxOption(command: Command): Command {
  return command.option(
    '--sandbox <file>',
    'use access negotiated elsewhere: a file of it, or - for standard input',
  );
}

export function givenAccess(context: Context, value: string): GivenAccess {
  const isVariable = context.environment.variable(VARIABLE) === value;
  const from = isVariable ? VARIABLE : '--sandbox';
  if (/^\s*\{/.test(value)) {
    if (isVariable) return { text: value, from };
    throw new AilsdError(
      'USAGE',
      '--sandbox names a file; a token on a command line is seen by all',
      {
        hint: 'put it into a file, pipe it with --sandbox -, or set AILSD_SANDBOX to it',
      },
    );
  }
  return { text: readInput(context, value, MOST_BYTES), from };
}
