/** Shows that something is waited for: a spinner on a terminal, one plain line elsewhere, nothing for programs. */
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { wantsColour } from '../style.js';

export interface Waiting extends Disposable {
  /** A line that stays, above what is still waited for. */
  say(text: string): void;
  /** The terminal has moved down a line because somebody typed Enter: back to where the spinner is. */
  afterEnter(): void;
}

export async function showWaiting(context: Context, text: string): Promise<Waiting> {
  const { io, environment, output } = context;
  const mayMove = io.err.isTerminal && environment.variable('TERM') !== 'dumb';
  if (output.mode !== 'text' || !mayMove || !knowsItsWidth(process.stderr)) {
    output.notice(text);
    return {
      say: (line) => output.notice(line),
      afterEnter: () => undefined,
      [Symbol.dispose]: () => undefined,
    };
  }
  const { default: ora } = await import('ora');
  const spinner = ora({
    text: escapeText(text),
    stream: process.stderr,
    color: wantsColour(io.err, environment) ? 'cyan' : false,
    // Keys are ours: Enter opens the browser, Ctrl-C is a signal.
    discardStdin: false,
  }).start();
  return {
    say: (line) => {
      spinner.stop();
      output.notice(line);
      spinner.start();
    },
    afterEnter: () => {
      io.err.write('\u001b[1A');
    },
    [Symbol.dispose]: () => {
      spinner.stop();
    },
  };
}

/** A terminal that says 0 does not know: a spinner would count its lines for ever. */
export function knowsItsWidth({ columns }: { readonly columns?: number }): boolean {
  return columns !== undefined && columns > 0;
}
