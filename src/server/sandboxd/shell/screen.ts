/** A shell's screen, kept lazily: it reads the ring in large steps behind the output, so that typing never waits for it. */
import { encodeUtf8 } from '../../../base/bytes.js';
import type { Ring } from '../../../stream/ring.js';
import { type Emulator, HISTORY_LINES } from './emulator.js';
import type { Size } from './sizes.js';
import { skippable } from './skip.js';

export interface ScreenParts {
  readonly ring: Ring;
  readonly size: Size;
  readonly createEmulator: (size: Size) => Emulator;
  /** Some of the backlog is gone. */
  readonly onRead: () => void;
}

export interface Snapshot {
  readonly screen: string;
  readonly offset: number;
  readonly size: Size;
}

/** Output that a snapshot may have to wait for: below it no screen exists, and a quiet shell costs no memory for one. */
const LAZY_BYTES = 1024 * 1024;
/** Read at a time; others get their turn in between. */
const STEP_BYTES = 32 * 1024;
/** Changes of size that wait to be read; beyond, the earliest are passed over. */
const MARKS_MAX = 1_024;

export class Screen implements Disposable {
  readonly #parts: ScreenParts;
  #emulator: Emulator | undefined;
  #offset = 0;
  #size: Size;
  /** Sizes that apply from an offset not yet read. */
  #marks: { readonly offset: number; readonly size: Size }[] = [];
  #work: Promise<void> = Promise.resolve();
  #pending = 0;
  #isReading = false;
  /** What stands for what was passed over. */
  #instead = '';
  #isDisposed = false;

  constructor(parts: ScreenParts) {
    this.#parts = parts;
    this.#size = parts.size;
  }

  /** How far it is behind. */
  get backlogBytes(): number {
    return this.#parts.ring.end - this.#offset;
  }

  /** There is more output; reads if it has become much. */
  note(): void {
    const { ring } = this.#parts;
    if (this.#isReading || this.backlogBytes < Math.min(LAZY_BYTES, ring.capacityBytes / 4)) return;
    if (!this.#isWorking && this.#skip()) return;
    this.#isReading = true;
    this.#enqueue(async () => {
      await this.#readUntil(() => this.backlogBytes < STEP_BYTES);
      this.#isReading = false;
    });
  }

  /** What comes from here on was written for this size. */
  resize(size: Size): void {
    const { end } = this.#parts.ring;
    if (this.#marks.at(-1)?.offset === end) this.#marks.pop();
    this.#marks.push({ offset: end, size });
    if (this.#marks.length > MARKS_MAX) this.#marks.shift();
  }

  /** As it is now, or a little later; never earlier. Whoever gets it gets the output from its offset on. */
  snapshot(historyLines: number): Promise<Snapshot> {
    const target = this.#parts.ring.end;
    return new Promise((resolve, reject) => {
      this.#enqueue(async () => {
        this.#skip();
        await this.#readUntil(() => this.#offset >= target);
        this.#applyMarks();
        try {
          const screen = await this.#open().serialize(historyLines);
          resolve({ screen, offset: this.#offset, size: this.#size });
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#emulator?.[Symbol.dispose]();
    this.#emulator = undefined;
  }

  #enqueue(work: () => Promise<void>): void {
    this.#pending += 1;
    this.#work = this.#work.then(work).finally(() => {
      this.#pending -= 1;
    });
  }

  /** Whether something reads, or waits to. */
  get #isWorking(): boolean {
    return this.#pending > 0;
  }

  /** Passes over what nobody could see any more: of a flood of text that is nearly all. */
  #skip(): boolean {
    const { ring } = this.#parts;
    if (this.#offset < ring.start) return false;
    const read = ring.read(this.#offset, this.backlogBytes);
    if (read.kind !== 'bytes') return false;
    const { bytes, instead } = skippable(read.bytes, this.#size.rows + HISTORY_LINES);
    if (bytes === 0) return false;
    this.#offset += bytes;
    this.#instead = instead === '' ? this.#instead : instead;
    return true;
  }

  async #readUntil(isDone: () => boolean): Promise<void> {
    const { ring, onRead } = this.#parts;
    while (!this.#isDisposed && !isDone() && this.#offset < ring.end) {
      this.#applyMarks();
      const until = this.#marks[0]?.offset ?? Number.POSITIVE_INFINITY;
      const read = ring.read(this.#offset, Math.min(STEP_BYTES, until - this.#offset));
      if (read.kind !== 'bytes') {
        // Only an exit in the midst of a flood outruns it: the picture then begins with what is left.
        this.#offset = ring.start;
        continue;
      }
      const emulator = this.#open();
      if (this.#instead !== '') await emulator.write(encodeUtf8(this.#instead));
      this.#instead = '';
      await emulator.write(read.bytes);
      this.#offset += read.bytes.length;
      onRead();
      await nextTurn();
    }
  }

  #applyMarks(): void {
    for (let mark = this.#marks[0]; mark !== undefined; mark = this.#marks[0]) {
      if (mark.offset > this.#offset) return;
      this.#marks.shift();
      this.#size = mark.size;
      this.#emulator?.resize(mark.size);
    }
  }

  #open(): Emulator {
    this.#emulator ??= this.#parts.createEmulator(this.#size);
    return this.#emulator;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
