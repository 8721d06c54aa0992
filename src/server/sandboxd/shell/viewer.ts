/** One connection that watches a shell, and perhaps writes: what of the output it has, and how much more it may be sent. */
import type { Close } from '../../../protocol/closes.js';
import type { ShellServerFrame } from '../../../protocol/shell-frames.js';
import type { Ring } from '../../../stream/ring.js';
import { SendWindow } from '../../../stream/window.js';
import type { Identity } from '../access/identity.js';
import type { Party } from './lease.js';
import type { Size } from './sizes.js';

/** What a viewer needs of its connection. */
export interface Line {
  /** As the latest token says. */
  readonly identity: Identity;
  readonly bufferedBytes: number;
  send(frame: Exclude<ShellServerFrame, { type: 'stdout' }>): void;
  sendOutput(offset: number, bytes: Uint8Array): void;
  /** Reads nothing more from the client until it is called off. */
  hold(): void;
  release(): void;
  close(close: Close): void;
}

export interface ViewerParts {
  readonly line: Line;
  readonly clientId: string | undefined;
  readonly isObserver: boolean;
  /** Whether the client acknowledges output; of one that does not, what has left our process counts as taken. */
  readonly isAcking: boolean;
  readonly size: Size | undefined;
}

/** Output on its way to one client. Two of these at 20 ms there and back are 50 MB a second. */
export const WINDOW_BYTES = 512 * 1024;
/** Output of one frame: a line that is cut in the midst of each would otherwise get nowhere. */
const FRAME_BYTES = 16 * 1024;
/** An ack of input waits so long for company. */
const ACK_DELAY_MS = 50;
const ACK_EVERY_BYTES = 32 * 1024;

export class Viewer implements Party {
  readonly line: Line;
  readonly clientId: string | undefined;
  readonly isObserver: boolean;
  size: Size | undefined;
  sizedAt = 0;
  isWriter = false;
  /** It has been told what it is and from where it gets output; before that it is sent nothing. */
  isReady = false;
  /** A screen is being made for it. */
  isAwaitingScreen = false;
  isExitSent = false;
  #isAcking: boolean;
  readonly #window = new SendWindow(WINDOW_BYTES);
  #inputAck: { readonly timer: NodeJS.Timeout; readonly from: number } | undefined;

  constructor({ line, clientId, isObserver, isAcking, size }: ViewerParts) {
    this.line = line;
    this.clientId = clientId;
    this.isObserver = isObserver;
    this.#isAcking = isAcking;
    this.size = size;
  }

  get actor(): Party['actor'] {
    return this.line.identity.actor;
  }

  get name(): string {
    return this.line.identity.name;
  }

  get mayWrite(): boolean {
    return !this.isObserver && this.line.identity.allowed.has('shell');
  }

  /** Under which its input is counted: a client's own name for itself counts for its owner alone. */
  get inputKey(): string | undefined {
    const { subject, name } = this.line.identity;
    return this.clientId === undefined ? undefined : `${subject}\0${name}\0${this.clientId}`;
  }

  /** The next byte it is to be sent. */
  get sent(): number {
    return this.#window.sent;
  }

  /** Everything before it has arrived. */
  get acked(): number {
    return this.#window.acked;
  }

  /** Output goes on from here: after `ready`, or after a screen. */
  begin(offset: number): void {
    this.#window.restart(offset);
  }

  /** The client has dealt with everything before this. An ack for what was never sent is left alone. */
  ack(offset: number): void {
    this.#isAcking = true;
    this.#window.ack(Math.min(offset, this.#window.sent));
  }

  /** Some of what was sent has left our process; whether that means anything here. */
  drained(): boolean {
    if (this.#isAcking) return false;
    this.#window.ack(Math.max(this.#window.acked, this.#window.sent - this.line.bufferedBytes));
    return true;
  }

  /** A chunk that has just been put into the ring, if it is the next one and there is room for all of it. */
  sendFresh(offset: number, chunk: Uint8Array): void {
    if (!this.isReady || this.isAwaitingScreen || this.#window.sent !== offset) return;
    if (chunk.length > FRAME_BYTES || this.#window.send(chunk.length) === 'blocked') return;
    this.line.sendOutput(offset, chunk);
  }

  /** As much as there is and as it may have. */
  pump(ring: Ring): 'sent' | 'behind' {
    if (!this.isReady || this.isAwaitingScreen) return 'sent';
    for (;;) {
      const { sent, available } = this.#window;
      const bytes = Math.min(ring.end - sent, available, FRAME_BYTES);
      if (bytes <= 0) return 'sent';
      const read = ring.read(sent, bytes);
      if (read.kind !== 'bytes') return 'behind';
      this.#window.send(read.bytes.length);
      this.line.sendOutput(sent, read.bytes);
    }
  }

  get hasRoom(): boolean {
    return !this.#window.isBlocked;
  }

  /** Input up to here was applied: the client is told soon, and not for each key. */
  acknowledgeInput(from: number, next: () => number): void {
    if (this.#inputAck === undefined) {
      const timer = setTimeout(() => this.#sendInputAck(next()), ACK_DELAY_MS);
      this.#inputAck = { timer, from };
    }
    if (next() - this.#inputAck.from >= ACK_EVERY_BYTES) this.#sendInputAck(next());
  }

  /** Nothing that was put off is done any more. */
  detach(): void {
    clearTimeout(this.#inputAck?.timer);
    this.#inputAck = undefined;
  }

  #sendInputAck(offset: number): void {
    clearTimeout(this.#inputAck?.timer);
    this.#inputAck = undefined;
    this.line.send({ type: 'ack', offset });
  }
}
