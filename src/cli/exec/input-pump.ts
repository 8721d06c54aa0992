/** Our standard input, whatever it is, given to a command as fast as that takes it; its end is told too. */
import type { Readable } from 'node:stream';

export interface PumpTarget {
  write(bytes: Uint8Array): 'taken' | 'full';
  endInput(): void;
}

export class InputPump implements Disposable {
  readonly #input: Readable;
  readonly #target: PumpTarget;
  /** Read and not taken yet. */
  #held: Uint8Array | undefined;
  #isOver = false;

  constructor(input: Readable, target: PumpTarget) {
    this.#input = input;
    this.#target = target;
    input.on('data', this.#take);
    input.once('end', this.#end);
    // A folder, or a terminal that went away: there is nothing more to read.
    input.once('error', this.#end);
    input.resume();
  }

  /** There is room again. */
  room(): void {
    const held = this.#held;
    if (held === undefined || this.#target.write(held) === 'full') return;
    this.#held = undefined;
    if (this.#isOver) this.#target.endInput();
    else this.#input.resume();
  }

  [Symbol.dispose](): void {
    this.#input.off('data', this.#take);
    this.#input.off('end', this.#end);
    this.#input.on('error', () => undefined);
    // What is left is nobody's; and a pipe that is read from keeps a process alive.
    this.#input.destroy();
  }

  readonly #take = (bytes: Uint8Array): void => {
    if (this.#target.write(bytes) === 'taken') return;
    this.#held = bytes;
    this.#input.pause();
  };

  readonly #end = (): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#held === undefined) this.#target.endInput();
  };
}
