/** Runs the server program in a process of its own: one JSON document in, one out, its error as ours. Loaded when it is needed. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { AilsdError } from '../../protocol/errors.js';
import { type Document, errorFrom, parseLine } from './document.js';

export type ServerProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** Secrets are in the document, never in the arguments, which everybody on the machine can read. */
export async function runOperation(
  operation: string,
  input: object,
  signal: AbortSignal,
): Promise<Document> {
  const child = startProgram(operation, input);
  child.stdin.end();
  const stop = (): void => void child.kill('SIGTERM');
  signal.addEventListener('abort', stop);
  const [out, err, code] = await Promise.all([
    readText(child.stdout),
    readText(child.stderr),
    endOf(child),
  ]);
  signal.removeEventListener('abort', stop);
  signal.throwIfAborted();
  if (code !== 0) throw errorFrom(err);
  const document = parseLine(out);
  if (document === undefined) throw errorFrom(err);
  return document;
}

/** Its stdin stays open: when that ends, `start` ends too. */
export function startProgram(operation: string, input: object): ServerProcess {
  // Built beside the command line.
  const file = join(import.meta.dirname, '..', 'server', 'ailsd-server.mjs');
  if (!existsSync(file)) {
    throw new AilsdError('CONFIG_INVALID', 'this copy of ailsd comes without the server', {
      hint: 'run `npm run build` in it, or install ailsd again',
    });
  }
  const child = spawn(process.execPath, [file, operation], { stdio: ['pipe', 'pipe', 'pipe'] });
  // A program that ended early says why on stderr; that its input is closed is no news.
  child.stdin.on('error', () => {});
  child.stdin.write(`${JSON.stringify(input)}\n`);
  return child;
}

/** The exit code; null when a signal ended it. */
export function endOf(child: ServerProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code));
  });
}

/** A list of 10,000 users has some 4 MB. */
const MOST_CHARACTERS = 32 * 1024 * 1024;

async function readText(stream: Readable): Promise<string> {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    if (text.length < MOST_CHARACTERS) text += chunk;
  }
  return text;
}
