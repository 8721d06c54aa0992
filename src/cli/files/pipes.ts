/** Bytes of this side: our own standard streams as they are, and files that somebody named. */
import { type Stats, write } from 'node:fs';
import { stat } from 'node:fs/promises';
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';
import { ReaderGone } from '../io.js';

const FULL_WAIT_MS = 5;

export async function writeOut(chunks: AsyncIterable<Uint8Array>): Promise<number> {
  let length = 0;
  for await (const chunk of chunks) {
    for (let rest = chunk; rest.length > 0; ) rest = rest.subarray(await writeSome(rest));
    length += chunk.length;
  }
  return length;
}

export async function* readIn(): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of process.stdin) yield Buffer.from(chunk);
}

/** A link that is named is meant as what it points to. */
export async function statusHere(path: string): Promise<Stats> {
  try {
    return await stat(path);
  } catch (cause) {
    throw new AilsdError('NOT_FOUND', `there is no ${path} here`, {
      cause,
      hint: 'check the name; a file of the sandbox is written THREAD:PATH',
    });
  }
}

function writeSome(bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    write(1, bytes, (error, written) => {
      const code = error === null ? undefined : errorCode(error);
      if (error === null) resolve(written);
      else if (code === 'EAGAIN') setTimeout(resolve, FULL_WAIT_MS, 0);
      else if (code === 'EPIPE' || code === 'EBADF') reject(new ReaderGone());
      else
        reject(
          new AilsdError('OUTPUT_FAILED', `standard output cannot be written (${String(code)})`),
        );
    });
  });
}
