/** A command in the sandbox with its streams in hand: started once, followed over every cut, until it has ended or we leave. */
import { createDeferred } from '../../base/deferred.js';
import { AilsdError } from '../../protocol/errors.js';
import type { ExecClientFrame } from '../../protocol/exec-frames.js';
import { ROUTES } from '../../protocol/routes.js';
import type { Size } from '../shell/shell-words.js';
import { Link, type LinkSession, type LinkState, type LinkWorld } from '../socket/link.js';
import { ExecConnection } from './exec-connection.js';
import { type ExecEvent, ExecStream } from './exec-stream.js';
import type { CommandOutcome, CommandRequest, OutputStream } from './exec-words.js';

export interface ExecSession extends LinkSession {
  readonly sandboxId: string;
}

export interface ExecOptions extends CommandRequest {
  /** Whether a cut is mended; yes by default. */
  readonly reconnect?: boolean | undefined;
  /** How long a cut may last before the outcome is given up. */
  readonly cutMaxMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ExecListener {
  /** Say `consumed(stream, end)` when they are dealt with: it is what lets more come. */
  output(stream: OutputStream, bytes: Uint8Array, end: number): void;
  /** So much output is not kept any more, and will never come. */
  missing(stream: OutputStream, bytes: number): void;
  /** It runs; also told each time a cut was mended. */
  running(): void;
  link(state: LinkState): void;
  problem(error: AilsdError): void;
  /** Input that could not be kept can be given again. */
  room(): void;
}

export type ExecEnd =
  | { readonly kind: 'exit'; readonly outcome: CommandOutcome }
  | { readonly kind: 'left' };

export type SignalName = Extract<ExecClientFrame, { type: 'signal' }>['signal'];

/** As long as a sandbox keeps what nobody reads. */
export const CUT_MAX_MS = 10 * 60 * 1000;
/** Signals that wait for the line to be back. */
const SIGNALS_MAX = 16;

export class RunningCommand implements AsyncDisposable {
  readonly commandId: string;
  readonly #session: ExecSession;
  readonly #listener: ExecListener;
  readonly #stream: ExecStream;
  readonly #link: Link;
  readonly #ended = createDeferred<ExecEnd>();
  readonly #consumed = { stdout: 0, stderr: 0 };
  /** Of each output, what was not kept for us; in order. */
  readonly #gaps: Record<OutputStream, { readonly from: number; readonly to: number }[]> = {
    stdout: [],
    stderr: [],
  };
  readonly #signals: SignalName[] = [];
  #sandboxId: string;
  #connection: ExecConnection | undefined;

  constructor(
    session: ExecSession,
    world: LinkWorld,
    options: ExecOptions,
    listener: ExecListener,
  ) {
    this.commandId = options.commandId;
    this.#session = session;
    this.#sandboxId = session.sandboxId;
    this.#listener = listener;
    this.#stream = new ExecStream(options);
    // Whoever waits for the end is told; nobody else needs to be.
    this.#ended.promise.catch(() => undefined);
    this.#link = new Link(session, world, {
      path: ROUTES.execSocket.path,
      reconnect: options.reconnect,
      cutMaxMs: options.cutMaxMs ?? CUT_MAX_MS,
      signal: options.signal,
      check: () => this.#check(),
      connect: (socket, ended) => {
        const connection = new ExecConnection({
          stream: this.#stream,
          socket,
          clock: world.clock,
          consumed: this.#consumed,
          event: (event) => this.#event(event),
          exit: (outcome) => this.#ended.resolve({ kind: 'exit', outcome }),
          problem: (error) => listener.problem(error),
          room: () => listener.room(),
          ended,
        });
        this.#connection = connection;
        return connection;
      },
      cut: () => {
        this.#connection = undefined;
        this.#stream.cut();
      },
      link: (state) => listener.link(state),
      failed: (error) => this.#ended.reject(this.#lost(error, options.signal)),
    });
  }

  /**
   * Settles when it has ended and all its output was consumed, when we left, or when there is no way to go on: with TRANSPORT_LOST
   * where it may have run, with what was in the way where it has not.
   */
  get ended(): Promise<ExecEnd> {
    return this.#ended.promise;
  }

  /** Whether it runs, ran, or may do. */
  get mayRun(): boolean {
    return this.#stream.mayRun;
  }

  /** `full`: nothing was taken; `room` tells when to come again. */
  write(bytes: Uint8Array): 'taken' | 'full' {
    const taken = this.#stream.write(bytes);
    if (taken === 'taken') this.#connection?.flush();
    return taken;
  }

  /** No more input follows. */
  endInput(): void {
    this.#stream.endInput();
    this.#connection?.flush();
  }

  /** On a line that is cut it waits, as long as there are not too many. */
  signal(signal: SignalName): void {
    if (this.#stream.isReady) this.#connection?.send({ type: 'signal', signal });
    else if (this.#signals.length < SIGNALS_MAX) this.#signals.push(signal);
  }

  resize(size: Size): void {
    const frame = this.#stream.resize(size);
    if (frame !== undefined) this.#connection?.send(frame);
  }

  consumed(stream: OutputStream, offset: number): void {
    this.#consumed[stream] = Math.max(this.#consumed[stream], offset);
    this.#jump(stream);
    this.#connection?.consumed(stream, offset);
  }

  /** Goes; the command stays. */
  leave(): void {
    this.#connection?.leave();
    this.#ended.resolve({ kind: 'left' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#link[Symbol.asyncDispose]();
  }

  /** In another sandbox nobody knows of it, and it would be run again. */
  #check(): void {
    const { sandboxId } = this.#session;
    if (sandboxId === this.#sandboxId) return;
    if (this.mayRun) throw new AilsdError('SESSION_EXPIRED', 'its sandbox has been replaced');
    this.#sandboxId = sandboxId;
  }

  #event(event: Extract<ExecEvent, { kind: 'ready' | 'output' }>): void {
    if (event.kind === 'output') {
      this.#link.moved();
      this.#listener.output(event.stream, event.bytes, event.end);
      return;
    }
    this.#link.ready();
    for (const stream of ['stdout', 'stderr'] as const) this.#skip(stream, event.missing[stream]);
    const size = this.#stream.currentSize();
    if (size !== undefined) this.#connection?.send(size);
    for (const signal of this.#signals.splice(0)) {
      this.#connection?.send({ type: 'signal', signal });
    }
    this.#listener.running();
  }

  #skip(stream: OutputStream, bytes: number): void {
    if (bytes === 0) return;
    this.#listener.missing(stream, bytes);
    const to = this.#stream.received(stream);
    this.#gaps[stream].push({ from: to - bytes, to });
    this.#jump(stream);
  }

  /** What does not come counts as dealt with, once all before it is. */
  #jump(stream: OutputStream): void {
    const [gap] = this.#gaps[stream];
    if (gap === undefined || this.#consumed[stream] < gap.from) return;
    this.#gaps[stream].shift();
    this.#consumed[stream] = gap.to;
    this.#jump(stream);
  }

  #lost(error: unknown, asked: AbortSignal | undefined): unknown {
    if (!this.mayRun || asked?.aborted === true) return error;
    const message = error instanceof Error ? error.message : String(error);
    return new AilsdError('TRANSPORT_LOST', `the command was lost from sight: ${message}`, {
      cause: error,
      details: { command_id: this.commandId },
      hint: `the outcome is not known here; ask for it with \`ailsd job wait ${this.commandId}\``,
    });
  }
}
