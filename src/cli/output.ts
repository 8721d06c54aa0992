/** Results, for people or for programs: the one place that knows which. Data goes to stdout, talk to stderr. */

import { escapeLines, UNSAFE } from './escape.js';
import type { Io } from './io.js';

export type OutputMode = 'text' | 'json' | 'jsonl';

export class Output {
  readonly mode: OutputMode;
  readonly #io: Io;
  readonly #quiet: boolean;

  constructor(io: Io, mode: OutputMode, quiet: boolean) {
    this.#io = io;
    this.mode = mode;
    this.#quiet = quiet;
  }

  /** One thing. The text is made only when it is wanted, and has escaped what came from outside. */
  result(document: object, text: () => string): void {
    if (this.mode === 'text') this.#io.out.write(withNewline(text()));
    else this.#io.out.write(`${jsonText(document, this.mode === 'json')}\n`);
  }

  /** Many of one kind: a document with `items`, or an object a line. The cursor is where the next page begins. */
  list(items: readonly object[], text: () => string, nextCursor: string | null = null): void {
    if (this.mode === 'text') {
      this.#io.out.write(withNewline(text()));
    } else if (this.mode === 'json') {
      this.#io.out.write(`${jsonText({ items, next_cursor: nextCursor }, true)}\n`);
    } else {
      this.#io.out.write(items.map((item) => `${jsonText(item, false)}\n`).join(''));
    }
  }

  /** Something a person should know and a program should not have to skip. */
  notice(text: string): void {
    if (this.#quiet || this.mode !== 'text') return;
    this.#io.err.write(`ailsd: ${escapeLines(text)}\n`);
  }
}

/** JSON in which every character that could disturb a terminal is written as its escape; the value is the same. */
export function jsonText(value: unknown, indented: boolean): string {
  const text = JSON.stringify(value, null, indented ? 2 : undefined);
  return text.replace(UNSAFE, (character) =>
    character === '\n' ? character : escapedUnits(character),
  );
}

function escapedUnits(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    const unit = character.charCodeAt(index).toString(16);
    return `\\u${unit.padStart(4, '0')}`;
  }).join('');
}

function withNewline(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
