/** Where a command's input comes from and its output goes to on this side. */
import type { OutputStream } from '../../client/exec/exec-words.js';
import type { RunningCommand } from '../../client/exec/running-command.js';

export interface CommandStreams extends Disposable {
  /** The command runs: what is for it may be read. Also called after each cut that was mended. */
  begin(command: RunningCommand): void;
  /** `taken` is called when it has been dealt with. */
  output(stream: OutputStream, bytes: Uint8Array, taken: () => void): void;
  /** The command can take input again. */
  room(): void;
  /** Resolves when nobody is there any more for what it writes; rejects when that cannot be written. */
  readonly gone: Promise<void>;
}
