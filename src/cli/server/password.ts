/** A password from a person or a pipe: asked without echo on a terminal, else the first line of standard input. */

import { readSync } from 'node:fs';
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';

/** Asks twice, since nobody sees what is typed. */
export async function readPassword(context: Context, name: string): Promise<string> {
  if (!context.io.inputIsTerminal) return fromPipe();
  if (!context.mayAsk) {
    throw new AilsdError('USAGE', 'nobody may be asked for the password', {
      hint: 'pipe it to standard input, or let one be made with --generate',
    });
  }
  const question = `Password for ${name}, at least ${PASSWORD_MIN_CHARACTERS} characters: `;
  const [first, again] = await ask(context, [question, 'The same again: ']);
  if (first === again) return first ?? '';
  throw new AilsdError('USAGE', 'the two passwords differ', { hint: 'run it again' });
}

/** What the server takes; told before anybody types. */
const PASSWORD_MIN_CHARACTERS = 8;
const MOST_BYTES = 8_192;
const EMPTY_PIPE_WAIT_MS = 5;

function fromPipe(): string {
  const buffer = Buffer.alloc(MOST_BYTES);
  let length = 0;
  while (length < buffer.length) {
    const read = readSome(buffer, length);
    if (read === 0) break;
    length += read ?? 0;
  }
  const [line = ''] = buffer.toString('utf8', 0, length).split(/\r?\n/, 1);
  if (line !== '') return line;
  throw new AilsdError('USAGE', 'standard input holds no password', {
    hint: 'pipe one, as in `ailsd server user add NAME < password.txt`, or use --generate',
  });
}

/** `undefined`: nothing yet; 0: the end. */
function readSome(buffer: Buffer, offset: number): number | undefined {
  try {
    return readSync(0, buffer, offset, buffer.length - offset, null);
  } catch (error) {
    const code = errorCode(error);
    if (code === 'EOF') return 0;
    if (code !== 'EAGAIN')
      throw new AilsdError('USAGE', 'standard input cannot be read', { cause: error });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, EMPTY_PIPE_WAIT_MS);
    return undefined;
  }
}

/** Raw all the while, so that nothing is echoed; undone whatever happens. What is typed ahead counts for the next question. */
async function ask({ io, signal }: Context, questions: readonly string[]): Promise<string[]> {
  const { stdin } = process;
  const answers: string[] = [];
  let typed = '';
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  io.err.write(questions[0] ?? '');
  let stop = (): void => {};
  try {
    await new Promise<void>((resolve, reject) => {
      const next = (): void => {
        answers.push(typed);
        typed = '';
        const question = questions[answers.length];
        if (question === undefined) resolve();
        else io.err.write(`\n${question}`);
      };
      const take = (text: string): void => {
        for (const character of text) {
          if (answers.length === questions.length) return;
          if (character === '\r' || character === '\n') next();
          else if (character === INTERRUPT) process.kill(process.pid, 'SIGINT');
          else if (character === END) reject(new AilsdError('USAGE', 'no password was typed'));
          else if (character === ERASE || character === BACKSPACE)
            typed = [...typed].slice(0, -1).join('');
          else if (character === KILL_LINE) typed = '';
          else if (typed.length < MOST_BYTES) typed += character;
        }
      };
      const abort = (): void => reject(signal.reason);
      stop = () => {
        stdin.off('data', take);
        signal.removeEventListener('abort', abort);
      };
      signal.addEventListener('abort', abort);
      stdin.on('data', take);
    });
    return answers;
  } finally {
    stop();
    stdin.setRawMode(false);
    stdin.pause();
    io.err.write('\n');
  }
}

/** What the keys send while the terminal does not act on them itself. */
const INTERRUPT = '\u0003';
const END = '\u0004';
const BACKSPACE = '\b';
const KILL_LINE = '\u0015';
const ERASE = '\u007f';
