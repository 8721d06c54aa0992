/** A command's streams are ours: bytes as they are, input to its end, output in order, whatever each of them is. */
import { createDeferred } from '../../base/deferred.js';
import { errorCode } from '../../base/error-code.js';
import type { OutputStream } from '../../client/exec/exec-words.js';
import type { RunningCommand } from '../../client/exec/running-command.js';
import { AilsdError } from '../../protocol/errors.js';
import { InputPump } from './input-pump.js';
import { isSamePlace, OutputWriter } from './output-writer.js';
import type { CommandStreams } from './streams.js';

const DESCRIPTORS = { stdout: 1, stderr: 2 } as const satisfies Record<OutputStream, number>;

export class OwnStreams implements CommandStreams {
  readonly #hasInput: boolean;
  readonly #writers: Readonly<Record<OutputStream, OutputWriter>>;
  readonly #gone = createDeferred();
  #pump: InputPump | undefined;
  #hasBegun = false;

  constructor(hasInput: boolean) {
    this.#hasInput = hasInput;
    const failed = (descriptor: number, error: unknown): void => this.#failed(descriptor, error);
    const stdout = new OutputWriter(failed);
    // Apart, so that a reader of one that takes its time does not hold up the other.
    const isOne = isSamePlace(DESCRIPTORS.stdout, DESCRIPTORS.stderr);
    this.#writers = { stdout, stderr: isOne ? stdout : new OutputWriter(failed) };
    this.#gone.promise.catch(() => undefined);
  }

  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  begin(command: RunningCommand): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    if (this.#hasInput) this.#pump = new InputPump(process.stdin, command);
    else command.endInput();
  }

  output(stream: OutputStream, bytes: Uint8Array, taken: () => void): void {
    this.#writers[stream].write(DESCRIPTORS[stream], bytes, taken);
  }

  room(): void {
    this.#pump?.room();
  }

  [Symbol.dispose](): void {
    this.#pump?.[Symbol.dispose]();
  }

  /** Talk that nobody can hear changes nothing. */
  #failed(descriptor: number, cause: unknown): void {
    if (descriptor !== DESCRIPTORS.stdout) return;
    const code = errorCode(cause);
    if (code === 'EPIPE' || code === 'EBADF') {
      this.#gone.resolve();
      return;
    }
    this.#gone.reject(
      new AilsdError('OUTPUT_FAILED', `standard output cannot be written (${String(code)})`, {
        cause,
      }),
    );
  }
}
