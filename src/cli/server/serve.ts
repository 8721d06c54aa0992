/** The server program as a child: says when it is ready, passes its log on, ends with it. */
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';
import { ReaderGone } from '../io.js';
import { jsonText } from '../output.js';
import { type Document, errorFrom, parseLine } from './document.js';
import { shown } from './options.js';
import { endOf, type ServerProcess, startProgram } from './program.js';

export async function serve(context: Context, input: object): Promise<void> {
  const { signal } = context;
  const child = startProgram('start', input);
  const ended = endOf(child);
  const stop = (): void => void child.kill('SIGTERM');
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  const log = new HeldLog(context, child);
  const ready = await Promise.race([firstLine(child), ended.then(() => undefined)]);
  if (ready !== undefined) {
    sayReady(context, ready);
    log.release();
  }
  const code = await ended;
  signal.removeEventListener('abort', stop);
  if (signal.aborted || code === 0) return;
  if (ready === undefined) throw errorFrom(log.held);
  throw new AilsdError('INTERNAL', 'the server ended unexpectedly', {
    hint: 'its last words are in the log above',
  });
}

/** One line in any mode: a script waits for it. */
function sayReady({ output, io }: Context, ready: Document): void {
  if (output.mode !== 'text') io.out.write(`${jsonText(ready, false)}\n`);
  else io.out.write(`serving at ${shown(ready, 'url')} (pid ${shown(ready, 'pid')})\n`);
}

/** What it says before it serves is kept: if it never does, the error in it is told in the form that was asked for. */
class HeldLog {
  readonly #context: Context;
  #isReleased = false;
  #isGone = false;
  held = '';

  constructor(context: Context, child: ServerProcess) {
    this.#context = context;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (this.#isReleased) this.#write(text);
      else if (this.held.length < MOST_HELD) this.held += text;
    });
  }

  release(): void {
    this.#isReleased = true;
    this.#write(this.held);
  }

  /** That nobody reads the log is no reason to stop serving. */
  #write(text: string): void {
    if (this.#isGone || text === '') return;
    try {
      this.#context.io.err.write(text);
    } catch (error) {
      if (!(error instanceof ReaderGone)) throw error;
      this.#isGone = true;
    }
  }
}

const MOST_HELD = 1024 * 1024;

function firstLine(child: ServerProcess): Promise<Document | undefined> {
  return new Promise((resolve) => {
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const end = text.indexOf('\n');
      if (end !== -1) resolve(parseLine(text.slice(0, end)));
    });
  });
}
