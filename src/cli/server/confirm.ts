/** A yes or no from a person, before something that can't be undone. Without a terminal there is nobody to ask. */
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';

const MOST_CHARACTERS = 64;

/** Only yes is yes. */
export async function confirm(context: Context, question: string): Promise<boolean> {
  const { io, mayAsk, signal } = context;
  if (!mayAsk) {
    throw new AilsdError('USAGE', 'nobody may be asked whether that is meant', {
      hint: 'say so with --yes',
    });
  }
  io.err.write(`${escapeText(question)} [y/N] `);
  return /^\s*y(es)?\s*$/i.test(await readLine(signal));
}

/** The terminal stays in its ordinary mode: the line is edited and shown there, and Ctrl-C is a signal. */
function readLine(signal: AbortSignal): Promise<string> {
  const { stdin } = process;
  stdin.setEncoding('utf8');
  return new Promise<string>((resolve, reject) => {
    let typed = '';
    const take = (text: string): void => {
      typed = (typed + text).slice(0, MOST_CHARACTERS);
      if (/[\r\n]/.test(text)) done();
    };
    const done = (): void => {
      stop();
      resolve(typed);
    };
    const abort = (): void => {
      stop();
      reject(signal.reason);
    };
    const stop = (): void => {
      stdin.off('data', take).off('end', done).pause();
      signal.removeEventListener('abort', abort);
    };
    signal.addEventListener('abort', abort, { once: true });
    stdin.on('data', take).on('end', done);
  });
}
