/** A token piped to standard input: the way for one to get in that leaves no trace in arguments or history. */

import { readSync } from 'node:fs';
import { errorCode } from '../../base/error-code.js';
import { Secret } from '../../base/secret.js';
import { SECRET_MAX_BYTES } from '../../client/credentials/headless.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';

export function readTokenFromStdin({ io }: Context): Secret {
  if (io.inputIsTerminal) {
    throw new AilsdError('USAGE', '--with-token reads the token from standard input', {
      hint: 'pipe it: `ailsd login --with-token < token.txt`',
    });
  }
  const text = readAll().trim();
  if (/^[\x21-\x7e]+$/.test(text) && text.length <= SECRET_MAX_BYTES) return new Secret(text);
  const what = text === '' ? 'nothing' : 'something that is no token';
  throw new AilsdError('USAGE', `standard input held ${what}`, {
    hint: 'pipe one access token: `ailsd login --with-token < token.txt`',
  });
}

const ROOM_FOR_NEWLINES = 2;
const FULL_WAIT_MS = 5;

/** As it comes: whoever writes into the pipe may be slower than we are. */
function readAll(): string {
  const buffer = Buffer.alloc(SECRET_MAX_BYTES + ROOM_FOR_NEWLINES + 1);
  let length = 0;
  while (length < buffer.length) {
    const read = readSome(buffer, length);
    if (read === 0) break;
    if (read !== undefined) length += read;
  }
  return buffer.toString('utf8', 0, length);
}

function readSome(buffer: Buffer, offset: number): number | undefined {
  try {
    return readSync(0, buffer, offset, buffer.length - offset, null);
  } catch (error) {
    const code = errorCode(error);
    if (code === 'EOF') return 0;
    if (code !== 'EAGAIN') {
      throw new AilsdError('USAGE', 'standard input cannot be read', { cause: error });
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_WAIT_MS);
    return undefined;
  }
}
