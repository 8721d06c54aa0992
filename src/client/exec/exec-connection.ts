/** One connection to a command: frames both ways, acks, pings. What outlives it is in the stream. */
import type { Clock } from '../../base/clock.js';
import type { Secret } from '../../base/secret.js';
import { AilsdError, isErrorCode } from '../../protocol/errors.js';
import {
  type ExecClientFrame,
  type ExecServerFrame,
  execServerFrames,
} from '../../protocol/exec-frames.js';
import { decodeFrame, encodeFrame } from '../../protocol/frame-codec.js';
import type { LinkConnection } from '../socket/link.js';
import { LIVENESS, Liveness } from '../socket/liveness.js';
import { Receipts } from '../socket/receipts.js';
import { openSocket, type Socket, type SocketOptions } from '../socket/socket.js';
import type { SocketEnd } from '../socket/socket-end.js';
import type { ExecEvent, ExecStream } from './exec-stream.js';
import { type CommandOutcome, OUTPUT_STREAMS, type OutputStream } from './exec-words.js';

export interface ExecConnectionOptions {
  readonly stream: ExecStream;
  readonly socket: SocketOptions;
  readonly clock: Clock;
  /** What of each output was dealt with so far, on whatever connection. */
  readonly consumed: Readonly<Record<OutputStream, number>>;
  readonly event: (event: Extract<ExecEvent, { kind: 'ready' | 'output' }>) => void;
  /** Everything before it was dealt with. */
  readonly exit: (outcome: CommandOutcome) => void;
  readonly problem: (error: AilsdError) => void;
  readonly room: () => void;
  readonly ended: (end: SocketEnd) => void;
}

/** Output that came and was not dealt with yet. A server that keeps to its windows never gets there. */
const UNSHOWN_MAX_BYTES = 8 * 1024 * 1024;

export class ExecConnection implements LinkConnection {
  readonly #options: ExecConnectionOptions;
  readonly #stream: ExecStream;
  readonly #socket: Socket;
  readonly #over = new AbortController();
  #receipts: Readonly<Record<OutputStream, Receipts>> | undefined;
  #liveness: Liveness | undefined;
  #isPaused = false;
  #hadUnanswered = false;
  #outcome: CommandOutcome | undefined;
  told: AilsdError | undefined;
  refusal: AilsdError | undefined;
  mismatch: AilsdError | undefined;

  constructor(options: ExecConnectionOptions) {
    this.#options = options;
    this.#stream = options.stream;
    this.#socket = openSocket(options.socket, {
      opened: () => this.#opened(),
      message: (message) => this.#message(message),
      ended: (end) => {
        this.#over.abort();
        // All there is has come; it only has to be dealt with.
        if (this.#outcome === undefined) options.ended(end);
      },
    });
  }

  send(frame: ExecClientFrame): void {
    this.#socket.send(encodeFrame(frame, this.#socket.wire));
  }

  /** Sends what input there is. */
  flush(): void {
    for (;;) {
      const input = this.#stream.nextInput();
      if (input === undefined) return;
      this.send(input);
    }
  }

  authenticate(token: Secret): void {
    this.send({ type: 'auth', token: token.reveal() });
  }

  /** `offset` of the stream was dealt with, as `options.consumed` says too. */
  consumed(stream: OutputStream, offset: number): void {
    this.#receipts?.[stream].consumed(offset);
    if (this.#isPaused && this.#unshownBytes() <= UNSHOWN_MAX_BYTES / 2) {
      this.#isPaused = false;
      this.#socket.resume();
    }
    this.#finish();
  }

  doubt(): void {
    this.#liveness?.doubt(this.#options.clock.monotonic());
    this.#tick();
  }

  leave(): void {
    this.send({ type: 'close' });
    this.#socket.close();
    this.#over.abort();
  }

  #opened(): void {
    this.#liveness = new Liveness(this.#options.clock.monotonic());
    this.#hadUnanswered = this.#stream.mayRun;
    this.send(this.#stream.start());
    this.#keepAlive(this.#over.signal).catch(() => undefined);
  }

  #message(message: string | Uint8Array): void {
    if (!this.#isPaused) this.#liveness?.heard(this.#options.clock.monotonic());
    const decoded = decodeFrame(execServerFrames, message);
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

  #take(event: ExecEvent): void {
    switch (event.kind) {
      case 'broken':
        this.#refuse(event.why);
        return;
      case 'exit':
        this.#outcome = event.outcome;
        this.#finish();
        return;
      case 'ready':
        this.#receipts = this.#newReceipts();
        break;
      case 'output':
        break;
    }
    this.#options.event(event);
    if (this.#isPaused || this.#unshownBytes() <= UNSHOWN_MAX_BYTES) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  #newReceipts(): Readonly<Record<OutputStream, Receipts>> {
    const { clock } = this.#options;
    const of = (stream: OutputStream): Receipts => {
      const send = (offset: number): void => this.send({ type: 'ack', stream, offset });
      return new Receipts(clock, this.#over.signal, send, this.#stream.received(stream));
    };
    return { stdout: of('stdout'), stderr: of('stderr') };
  }

  #unshownBytes(): number {
    const { consumed } = this.#options;
    const [out, err] = OUTPUT_STREAMS.map((one) => this.#stream.received(one) - consumed[one]);
    return (out ?? 0) + (err ?? 0);
  }

  /** The exit is told when everything before it was dealt with. */
  #finish(): void {
    const outcome = this.#outcome;
    if (outcome === undefined || this.#unshownBytes() > 0) return;
    this.#outcome = undefined;
    this.leave();
    this.#options.exit(outcome);
  }

  /** After `ready` the connection goes on unless the server closes it. */
  #toldError(frame: Extract<ExecServerFrame, { type: 'error' }>): void {
    const { code, message, retryable, type: _, ...details } = frame;
    const known = isErrorCode(code) ? code : 'PROTOCOL_MISMATCH';
    const error = new AilsdError(known, message, { details: { ...details, retryable } });
    this.told = error;
    if (this.#stream.isReady) {
      this.#options.problem(error);
    } else {
      this.#stream.refused(this.#hadUnanswered);
      this.refusal = error;
      this.#socket.drop();
    }
  }

  #refuse(why: string): void {
    this.mismatch = new AilsdError('PROTOCOL_MISMATCH', why);
    this.#socket.drop();
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
    if (state === 'dead') this.#socket.drop();
  }
}
