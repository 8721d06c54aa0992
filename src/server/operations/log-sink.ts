/** Where log lines go: a descriptor, written behind the program's back and in order. A reader that stalls costs lines, not answers. */
import { write } from 'node:fs';

/** Lines waiting to be written; what comes on top is counted and told of later. */
const MAX_WAITING_CHARACTERS = 1024 * 1024;
const FULL_PIPE_WAIT_MS = 5;

export class LogSink {
  readonly #descriptor: number;
  #waiting = '';
  #dropped = 0;
  #writing: Promise<void> | undefined;
  #isGone = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  readonly write = (line: string): void => {
    if (this.#isGone) return;
    if (this.#waiting.length + line.length > MAX_WAITING_CHARACTERS) {
      this.#dropped += 1;
      return;
    }
    this.#waiting += line;
    this.#writing ??= this.#drain();
  };

  /** When everything so far is out, or after `timeoutMs`. */
  async flush(timeoutMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    await Promise.race([this.#writing, late]);
    clearTimeout(timer);
  }

  async #drain(): Promise<void> {
    // After this turn of the loop: the lines of many requests go out in one call.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting !== '' && !this.#isGone) {
      const chunk = Buffer.from(this.#waiting);
      this.#waiting = '';
      await this.#writeAll(chunk);
      if (this.#dropped > 0) this.#waiting += this.#tellDropped();
    }
    this.#writing = undefined;
  }

  async #writeAll(chunk: Buffer): Promise<void> {
    let rest = chunk;
    while (rest.length > 0 && !this.#isGone) rest = rest.subarray(await this.#writeSome(rest));
  }

  #writeSome(bytes: Buffer): Promise<number> {
    return new Promise((resolve) => {
      write(this.#descriptor, bytes, (error, written) => {
        if (error === null) return resolve(written);
        if (error.code === 'EAGAIN') return void setTimeout(() => resolve(0), FULL_PIPE_WAIT_MS);
        // Nobody reads any more; that is no reason to stop serving.
        this.#isGone = true;
        resolve(0);
      });
    });
  }

  #tellDropped(): string {
    const lines = this.#dropped;
    this.#dropped = 0;
    return `${JSON.stringify({ level: 'warn', message: 'log lines were dropped', lines })}\n`;
  }
}
