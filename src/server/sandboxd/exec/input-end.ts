/**
 * The end of input by a FIFO, for a program that opens it by name (`/dev/stdin`) after everything was said: the kernel has it wait for
 * somebody to write, who never comes. So for as long as the program runs somebody comes now and then, and goes at once. Linux only.
 */
import { closeSync, constants, openSync } from 'node:fs';

const EVERY_MS = 25;

export class InputEnd implements Disposable {
  readonly #timer: NodeJS.Timeout;
  readonly #reading: number;

  private constructor(reading: number) {
    this.#reading = reading;
    this.#timer = setInterval(() => this.#pass(), EVERY_MS);
    this.#timer.unref();
  }

  /** `writing`: our end, before it is closed. `undefined`: it can't be opened again here. */
  static of(writing: number): InputEnd | undefined {
    try {
      const { O_RDONLY, O_NONBLOCK } = constants;
      return new InputEnd(openSync(`/proc/self/fd/${writing}`, O_RDONLY | O_NONBLOCK));
    } catch {
      return undefined;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    closeSync(this.#reading);
  }

  #pass(): void {
    try {
      const { O_WRONLY, O_NONBLOCK } = constants;
      closeSync(openSync(`/proc/self/fd/${this.#reading}`, O_WRONLY | O_NONBLOCK));
    } catch {
      // There are no descriptors left: then a moment later.
    }
  }
}
