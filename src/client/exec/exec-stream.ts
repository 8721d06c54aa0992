/**
 * A command as its client knows it, over connections that come and go: every output byte once and in order, every input byte applied
 * once, and the command itself run once. Frames go in and out; no I/O, no clock.
 */
import type { ExecClientFrame, ExecServerFrame } from '../../protocol/exec-frames.js';
import { DATA_MAX_BYTES, type DataFrame } from '../../protocol/frames.js';
import { Inbox } from '../../stream/inbox.js';
import { Outbox } from '../../stream/outbox.js';
import type { Size } from '../shell/shell-words.js';
import type { CommandOutcome, CommandRequest, OutputStream } from './exec-words.js';

/** Input that is kept until the command's sandbox has it. */
const INPUT_MAX_BYTES = 1024 * 1024;
/** Input under way at once: more would only wait in the sandbox. */
const INPUT_WINDOW_BYTES = 256 * 1024;

type StartFrame = Extract<ExecClientFrame, { type: 'start' }>;
type ReadyFrame = Extract<ExecServerFrame, { type: 'ready' }>;
type ExitFrame = Extract<ExecServerFrame, { type: 'exit' }>;
type EofFrame = Extract<ExecClientFrame, { type: 'eof' }>;

export type ExecEvent =
  | { readonly kind: 'ready'; readonly missing: Readonly<Record<OutputStream, number>> }
  /** `end` is the offset behind the bytes: what to report as consumed when they are dealt with. */
  | {
      readonly kind: 'output';
      readonly stream: OutputStream;
      readonly bytes: Uint8Array;
      readonly end: number;
    }
  /** After the last byte of both outputs. */
  | { readonly kind: 'exit'; readonly outcome: CommandOutcome }
  /** The two sides disagree: this connection is of no use, another one may be. */
  | { readonly kind: 'broken'; readonly why: string };

export class ExecStream {
  readonly #request: CommandRequest;
  readonly #outbox = new Outbox(INPUT_MAX_BYTES);
  readonly #inboxes = { stdout: new Inbox(), stderr: new Inbox() };
  #size: Size | undefined;
  /** It runs or ran for certain: it must not be started again, wherever the next connection leads. */
  #wasReady = false;
  /** A start that nobody has answered: perhaps it runs. */
  #isUnanswered = false;
  #isInputEnded = false;
  /** On this connection: whether `ready` came, and what was sent of the input. */
  #isReady = false;
  #sent = 0;
  #isEofSent = false;

  constructor(request: CommandRequest) {
    this.#request = request;
    this.#size = request.terminal?.size;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether it runs, ran, or may do. */
  get mayRun(): boolean {
    return this.#wasReady || this.#isUnanswered;
  }

  get roomBytes(): number {
    return this.#outbox.roomBytes;
  }

  /** Everything of an output before this has come. */
  received(stream: OutputStream): number {
    return this.#inboxes[stream].next;
  }

  /** Begins a connection, and says what to send on it first. */
  start(): StartFrame {
    this.cut();
    const { commandId } = this.#request;
    const { stdout, stderr } = this.#inboxes;
    const resume = {
      type: 'start',
      command_id: commandId,
      stdout_offset: stdout.next,
      stderr_offset: stderr.next,
    } as const;
    if (this.#wasReady) return resume;
    this.#isUnanswered = true;
    return { ...resume, ...toStart(this.#request, this.#size) };
  }

  /** The sandbox has answered a start with a no: it does not run, unless an earlier start was never answered. */
  refused(hadUnanswered: boolean): void {
    this.#isUnanswered = hadUnanswered;
  }

  cut(): void {
    this.#isReady = false;
    this.#isEofSent = false;
  }

  /** Takes all of it, or none when it is more than is kept. */
  write(bytes: Uint8Array): 'taken' | 'full' {
    return this.#outbox.append(bytes);
  }

  /** No more input follows. */
  endInput(): void {
    this.#isInputEnded = true;
  }

  resize(size: Size): ExecClientFrame | undefined {
    this.#size = size;
    return this.#isReady ? { type: 'resize', ...size } : undefined;
  }

  /** What a connection that goes on with a command has to be told besides: a size that changed meanwhile. */
  currentSize(): ExecClientFrame | undefined {
    return this.#size === undefined ? undefined : { type: 'resize', ...this.#size };
  }

  /** The next input to send, until there is none or enough is under way. */
  nextInput(): DataFrame<'stdin'> | EofFrame | undefined {
    if (!this.#isReady || this.#isEofSent) return undefined;
    const from = Math.max(this.#sent, this.#outbox.start);
    const { end } = this.#outbox;
    if (from === end) {
      if (!this.#isInputEnded) return undefined;
      this.#isEofSent = true;
      return { type: 'eof', offset: end };
    }
    const roomBytes = Math.max(0, this.#outbox.start + INPUT_WINDOW_BYTES - from);
    const read = this.#outbox.pendingFrom(from, Math.min(roomBytes, DATA_MAX_BYTES));
    if (read.kind !== 'bytes' || read.bytes.length === 0) return undefined;
    this.#sent = read.offset + read.bytes.length;
    return { type: 'stdin', data: read.bytes, offset: read.offset };
  }

  receive(frame: ExecServerFrame): ExecEvent | undefined {
    switch (frame.type) {
      case 'stdout':
      case 'stderr':
        return this.#output(frame);
      case 'ready':
        return this.#ready(frame);
      case 'ack':
        return this.#acked(frame.offset);
      case 'exit':
        return this.#exit(frame);
      default:
        // Those that every endpoint has belong to the connection.
        return undefined;
    }
  }

  #ready(frame: ReadyFrame): ExecEvent {
    if (frame.command_id !== this.#request.commandId) return broken('it is another command');
    const missing = { stdout: 0, stderr: 0 };
    for (const stream of ['stdout', 'stderr'] as const) {
      const offset = stream === 'stdout' ? frame.stdout_offset : frame.stderr_offset;
      const { next } = this.#inboxes[stream];
      if (offset <= next) continue;
      missing[stream] = offset - next;
      this.#inboxes[stream] = new Inbox(offset);
    }
    if (this.#outbox.ack(frame.input_offset).kind === 'ahead') {
      return broken('input was applied that never was');
    }
    this.#sent = this.#outbox.start;
    this.#wasReady = true;
    this.#isUnanswered = false;
    this.#isReady = true;
    return { kind: 'ready', missing };
  }

  #output({ type, data, offset }: DataFrame<OutputStream>): ExecEvent | undefined {
    if (!this.#isReady) return broken('output came before ready');
    const inbox = this.#inboxes[type];
    const accepted = inbox.accept(offset ?? inbox.next, data);
    if (accepted.kind === 'gap') {
      return broken(`${type} is missing from ${accepted.expected} to ${offset}`);
    }
    const { bytes } = accepted;
    return bytes.length === 0
      ? undefined
      : { kind: 'output', stream: type, bytes, end: inbox.next };
  }

  #acked(offset: number): ExecEvent | undefined {
    const acked = this.#outbox.ack(offset);
    return acked.kind === 'ahead' ? broken('input was acknowledged that never was') : undefined;
  }

  #exit(frame: ExitFrame): ExecEvent {
    if (!this.#isReady) return broken('it ended before ready');
    const stdout = this.#summary('stdout', frame.stdout_offset, frame.stdout_truncated);
    const stderr = this.#summary('stderr', frame.stderr_offset, frame.stderr_truncated);
    if (stdout === undefined || stderr === undefined) return broken('it ended before its output');
    const { origin, exit_code: exitCode, signal, timed_out: timedOut, oom } = frame;
    return {
      kind: 'exit',
      outcome: {
        origin,
        exitCode,
        signal,
        timedOut,
        oom,
        stdout: { ...stdout, sha256: frame.stdout_sha256 },
        stderr: { ...stderr, sha256: frame.stderr_sha256 },
      },
    };
  }

  #summary(stream: OutputStream, bytes: number, truncated: boolean) {
    const { next } = this.#inboxes[stream];
    const isWhole = truncated ? next <= bytes : next === bytes;
    return isWhole ? { bytes, truncated } : undefined;
  }
}

function toStart(request: CommandRequest, size: Size | undefined): Partial<StartFrame> {
  const { argv, cwd, env, timeoutMs, outputMaxBytes, terminal } = request;
  return {
    argv: [...argv],
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
    ...(outputMaxBytes === undefined
      ? {}
      : { limits: { stdout_bytes: outputMaxBytes, stderr_bytes: outputMaxBytes } }),
    ...(terminal === undefined ? {} : { tty: true, ...size }),
    ...(terminal?.term === undefined ? {} : { term: terminal.term }),
  };
}

function broken(why: string): ExecEvent {
  return { kind: 'broken', why };
}
