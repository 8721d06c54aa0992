/** In which order the two outputs of a command grew, and when: by it a log shows them as they came. No I/O, no clock. */
import type { StreamName } from './program.js';

export interface Piece {
  readonly stream: StreamName;
  /** Of its first byte; it goes to the next piece of the same stream. */
  readonly offset: number;
  readonly atMs: number;
}

/** Beyond, the earlier half is told as one piece a stream. */
const PIECES_MAX = 4_096;
/** What one stream says in so short a time is one piece. */
const TOGETHER_MS = 100;

export class Journal {
  #pieces: Piece[] = [];

  add(stream: StreamName, offset: number, atMs: number): void {
    const last = this.#pieces.at(-1);
    if (last?.stream === stream && atMs - last.atMs < TOGETHER_MS) return;
    this.#pieces.push({ stream, offset, atMs });
    if (this.#pieces.length > PIECES_MAX) this.#shorten();
  }

  get pieces(): readonly Piece[] {
    return this.#pieces;
  }

  #shorten(): void {
    const later = this.#pieces.slice(PIECES_MAX / 2);
    const firsts = (['stdout', 'stderr'] as const).flatMap((name) => {
      const first = this.#pieces.find(({ stream }) => stream === name);
      return first === undefined || later.includes(first) ? [] : [first];
    });
    this.#pieces = [...firsts, ...later];
  }
}
