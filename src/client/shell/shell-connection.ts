/** One connection to a shell: frames both ways, acks, pings. What outlives it is in the stream. */
import type { Clock } from '../../base/clock.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError, isErrorCode } from '../../protocol/errors.js';
import { decodeFrame, encodeFrame } from '../../protocol/frame-codec.js';
import {
  type ShellClientFrame,
  type ShellServerFrame,
  shellServerFrames,
} from '../../protocol/shell-frames.js';
import { ReceiveWindow } from '../../stream/window.js';
import { LIVENESS, Liveness } from '../socket/liveness.js';
import { openSocket, type Socket, type SocketOptions } from '../socket/socket.js';
import type { SocketEnd } from '../socket/socket-end.js';
import type { ShellEvent, ShellStream } from './shell-stream.js';
import type { Outcome } from './shell-words.js';

export interface ShellConnectionOptions {
  readonly stream: ShellStream;
  readonly socket: SocketOptions;
  readonly clock: Clock;
  /** What was shown on connections before this one. */
  readonly consumed: number;
  readonly ready: () => void;
  readonly event: (event: Exclude<ShellEvent, { kind: 'broken' | 'exit' }>) => void;
  readonly exit: (outcome: Outcome) => void;
  readonly problem: (error: AilsdError) => void;
  readonly room: () => void;
  readonly ended: (end: SocketEnd) => void;
}

/** Acks move the sender's window; one for every eighth of it is often enough. */
const ACKS = { ackEveryBytes: 32 * 1024, maxDelayMs: 50 } as const;
/** Output that came and was not shown yet. A server that keeps to its window never gets there. */
const UNSHOWN_MAX_BYTES = 8 * 1024 * 1024;

export class ShellConnection {
  readonly #options: ShellConnectionOptions;
  readonly #stream: ShellStream;
  readonly #socket: Socket;
  readonly #over = new AbortController();
  #liveness: Liveness | undefined;
  #acks = new ReceiveWindow(ACKS);
  #isAckAwaited = false;
  #received = 0;
  #consumed: number;
  #isPaused = false;
  #exit: { readonly outcome: Outcome; readonly end: number } | undefined;
  /** What the server said last, if that was an error: it says more than the close that follows. */
  told: AilsdError | undefined;
  /** The answer to `start`, when it was an error: the attempt is over. */
  refusal: AilsdError | undefined;
  /** What makes no sense on this connection: another one may do better. */
  mismatch: AilsdError | undefined;

  constructor(options: ShellConnectionOptions) {
    this.#options = options;
    this.#stream = options.stream;
    this.#consumed = options.consumed;
    this.#received = options.consumed;
    this.#socket = openSocket(options.socket, {
      opened: () => this.#opened(),
      message: (message) => this.#message(message),
      ended: (end) => {
        this.#over.abort();
        // All there is has come; it only has to be shown.
        if (this.#exit === undefined) options.ended(end);
      },
    });
  }

  send(frame: ShellClientFrame): void {
    this.#socket.send(encodeFrame(frame, this.#socket.wire));
  }

  /** Sends what input there is. */
  flush(): void {
    for (;;) {
      const input = this.#stream.nextInput();
      if (input === undefined) return;
      this.#socket.send(encodeFrame(input, this.#socket.wire));
    }
  }

  authenticate(token: Secret): void {
    this.send({ type: 'auth', token: token.reveal() });
  }

  consumed(offset: number): void {
    // Shown for a connection before this one, which has begun anew.
    if (offset > this.#received) return;
    this.#consumed = offset;
    const { clock } = this.#options;
    const nowMs = clock.monotonic();
    this.#acks.consume(offset, nowMs);
    if (this.#acks.isDue(nowMs)) this.#ack();
    else this.#ackLater(nowMs);
    if (this.#isPaused && this.#received - offset <= UNSHOWN_MAX_BYTES / 2) {
      this.#isPaused = false;
      this.#socket.resume();
    }
    this.#finish();
  }

  /** The line may be dead without having said so: ask at once. */
  doubt(): void {
    this.#liveness?.doubt(this.#options.clock.monotonic());
    this.#tick();
  }

  leave(): void {
    this.send({ type: 'close' });
    this.#socket.close();
    this.#over.abort();
  }

  drop(): void {
    this.#socket.drop();
  }

  #opened(): void {
    this.#liveness = new Liveness(this.#options.clock.monotonic());
    this.send(this.#stream.start());
    this.#keepAlive(this.#over.signal).catch(() => undefined);
  }

  #message(message: string | Uint8Array): void {
    if (!this.#isPaused) this.#liveness?.heard(this.#options.clock.monotonic());
    const decoded = decodeFrame(shellServerFrames, message);
    if (!decoded.ok) {
      this.#refuse(decoded.error.message);
      return;
    }
    const { frame } = decoded;
    this.told = undefined;
    if (frame.type === 'error') this.#toldError(frame);
    const event = this.#stream.receive(frame);
    if (event !== undefined) this.#take(event);
    if (frame.type !== 'ack' && frame.type !== 'ready') return;
    this.flush();
    if (this.#stream.roomBytes > 0) this.#options.room();
  }

  #take(event: ShellEvent): void {
    switch (event.kind) {
      case 'broken':
        this.#refuse(event.why);
        return;
      case 'exit':
        this.#exit = event;
        this.#finish();
        return;
      case 'ready':
        if (event.ready.state === 'fresh') this.#restart(0);
        this.#options.ready();
        break;
      case 'screen':
        this.#restart(event.end);
        break;
      case 'output':
        this.#received = event.end;
        break;
      case 'control':
        if (event.role === 'writer') this.flush();
        break;
    }
    this.#options.event(event);
    if (this.#isPaused || this.#received - this.#consumed <= UNSHOWN_MAX_BYTES) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  /** Output begins elsewhere: what was shown before says nothing about it. */
  #restart(received: number): void {
    this.#received = received;
    this.#consumed = 0;
    this.#acks = new ReceiveWindow(ACKS);
  }

  /** The exit is told when everything before it was shown; then the shell may forget us. */
  #finish(): void {
    if (this.#exit === undefined || this.#consumed < this.#exit.end) return;
    const { outcome } = this.#exit;
    this.#exit = undefined;
    this.#ack();
    this.leave();
    this.#options.exit(outcome);
  }

  /** After `ready` the connection goes on unless the server closes it. */
  #toldError(frame: Extract<ShellServerFrame, { type: 'error' }>): void {
    const { code, message, retryable, type: _, ...details } = frame;
    const known = isErrorCode(code) ? code : 'PROTOCOL_MISMATCH';
    const error = new AilsdError(known, message, { details: { ...details, retryable } });
    this.told = error;
    if (this.#stream.isReady) {
      this.#options.problem(error);
    } else {
      this.refusal = error;
      this.drop();
    }
  }

  #refuse(why: string): void {
    this.mismatch = new AilsdError('PROTOCOL_MISMATCH', why);
    this.drop();
  }

  #ack(): void {
    this.send({ type: 'ack', offset: this.#acks.take() });
  }

  /** One timer for however many small outputs: an ack for each would double the traffic of a keystroke. */
  #ackLater(nowMs: number): void {
    const { dueAtMs } = this.#acks;
    if (this.#isAckAwaited || dueAtMs === undefined) return;
    this.#isAckAwaited = true;
    const { clock } = this.#options;
    clock.sleep(Math.max(0, dueAtMs - nowMs), this.#over.signal).then(
      () => {
        this.#isAckAwaited = false;
        const thenMs = clock.monotonic();
        if (this.#acks.isDue(thenMs)) this.#ack();
        else this.#ackLater(thenMs);
      },
      () => undefined,
    );
  }

  async #keepAlive(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#options.clock.sleep(LIVENESS.tickMs, signal);
      this.#tick();
    }
  }

  #tick(): void {
    // Nothing is heard while we do not listen.
    if (this.#isPaused) return;
    const state = this.#liveness?.tick(this.#options.clock.monotonic());
    if (state === 'ping') this.send({ type: 'ping' });
    if (state === 'dead') this.drop();
  }
}
