/** A command's output kept for one document: as much as was asked for, and no more whatever comes. */
import { concatBytes } from '../../base/bytes.js';
import type { OutputStream } from '../../client/exec/exec-words.js';
import type { RunningCommand } from '../../client/exec/running-command.js';
import { InputPump } from './input-pump.js';
import type { CommandStreams } from './streams.js';

/** Of each output, in a document. */
export const CAPTURE_MAX_BYTES = 4 * 1024 * 1024;

export class CapturedStreams implements CommandStreams {
  readonly #hasInput: boolean;
  readonly #chunks: Record<OutputStream, Uint8Array[]> = { stdout: [], stderr: [] };
  readonly #bytes = { stdout: 0, stderr: 0 };
  #pump: InputPump | undefined;
  #hasBegun = false;

  constructor(hasInput: boolean) {
    this.#hasInput = hasInput;
  }

  /** Nobody reads it before it is whole. */
  readonly gone = new Promise<void>(() => undefined);

  kept(stream: OutputStream): Uint8Array {
    return concatBytes(this.#chunks[stream]);
  }

  begin(command: RunningCommand): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    if (this.#hasInput) this.#pump = new InputPump(process.stdin, command);
    else command.endInput();
  }

  output(stream: OutputStream, bytes: Uint8Array, taken: () => void): void {
    const room = CAPTURE_MAX_BYTES - this.#bytes[stream];
    // A copy: the chunk is a view of a message of any size.
    const kept = bytes.slice(0, Math.max(0, room));
    this.#bytes[stream] += kept.length;
    if (kept.length > 0) this.#chunks[stream].push(kept);
    taken();
  }

  room(): void {
    this.#pump?.room();
  }

  [Symbol.dispose](): void {
    this.#pump?.[Symbol.dispose]();
  }
}
