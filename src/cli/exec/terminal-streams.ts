/** A command in a terminal of its own, joined to ours: keys go there raw, what it draws comes here, and ours is given back as it was. */
import type { OutputStream } from '../../client/exec/exec-words.js';
import type { RunningCommand } from '../../client/exec/running-command.js';
import { EscapeKeys } from '../terminal/escape-keys.js';
import { ModeTracker } from '../terminal/mode-tracker.js';
import { RawTerminal } from '../terminal/raw-terminal.js';
import { TerminalWriter } from '../terminal/terminal-writer.js';
import type { CommandStreams } from './streams.js';

const ESCAPE = '~';
const HELP = [
  'Keys of ailsd, after Enter:',
  '  ~.   leave; the command goes on',
  '  ~^Z  suspend ailsd',
  '  ~?   this help',
  '',
].join('\r\n');

export class TerminalStreams implements CommandStreams {
  readonly #keys = new EscapeKeys(ESCAPE);
  readonly #modes = new ModeTracker();
  readonly #writer = new TerminalWriter(1);
  #terminal: RawTerminal | undefined;
  #command: RunningCommand | undefined;
  #held: Uint8Array[] = [];

  /** A terminal that hangs up is a signal. */
  readonly gone = new Promise<void>(() => undefined);

  /** Only now: until it runs, Ctrl-C is for us. */
  begin(command: RunningCommand): void {
    if (this.#terminal !== undefined) return;
    this.#command = command;
    this.#terminal = new RawTerminal(
      { keys: (bytes) => this.#typed(bytes), resized: (size) => command.resize(size) },
      () => this.#writer.writeNow(this.#modes.repair()),
    );
    // It may have changed since the command was asked for.
    command.resize(this.#terminal.size);
  }

  output(_: OutputStream, bytes: Uint8Array, taken: () => void): void {
    this.#modes.take(bytes);
    this.#writer.write(bytes, taken);
  }

  room(): void {
    this.#send();
  }

  [Symbol.dispose](): void {
    this.#terminal?.[Symbol.dispose]();
    this.#writer[Symbol.dispose]();
  }

  #typed(bytes: Uint8Array): void {
    for (const event of this.#keys.take(bytes)) {
      if (event.kind === 'input') this.#held.push(event.bytes);
      else if (event.command === 'detach') this.#command?.leave();
      else if (event.command === 'help') this.#writer.write(`\r\n${HELP}`);
      else if (event.command === 'suspend') this.#suspend();
    }
    this.#send();
  }

  #send(): void {
    for (let [first] = this.#held; first !== undefined; [first] = this.#held) {
      if (this.#command?.write(first) !== 'taken') {
        this.#terminal?.pause();
        return;
      }
      this.#held.shift();
    }
    this.#terminal?.resume();
  }

  #suspend(): void {
    // It comes back when the user does; there is nobody to tell of a failure but the terminal that failed.
    this.#terminal?.suspend().catch(() => undefined);
  }
}
