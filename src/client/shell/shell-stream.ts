/**
 * A shell as its client knows it, over connections that come and go: every output byte once and in order, every input byte applied once.
 * Frames go in and out; no I/O, no clock.
 */
import type { DataFrame } from '../../protocol/frames.js';
import { DATA_MAX_BYTES } from '../../protocol/frames.js';
import type { ShellClientFrame, ShellServerFrame } from '../../protocol/shell-frames.js';
import { Inbox } from '../../stream/inbox.js';
import { Outbox } from '../../stream/outbox.js';
import type { Actor, Outcome, Role, Size, StartOptions, Viewer } from './shell-words.js';

/** Input that is kept until the shell has it, typed on a live line or on a dead one. */
export const INPUT_MAX_BYTES = 1024 * 1024;
/** Input under way at once: more would only wait in the sandbox. */
const INPUT_WINDOW_BYTES = 256 * 1024;
/** A screen with its history, over all its frames. */
const SNAPSHOT_MAX_CHARS = 16 * 1024 * 1024;

type ReadyFrame = Extract<ShellServerFrame, { type: 'ready' }>;
type SnapshotFrame = Extract<ShellServerFrame, { type: 'snapshot' }>;
type ExitFrame = Extract<ShellServerFrame, { type: 'exit' }>;
type StartFrame = Extract<ShellClientFrame, { type: 'start' }>;

export type ShellEvent =
  | { readonly kind: 'ready'; readonly ready: Ready }
  /** `end` is the offset behind the bytes: what to report as consumed when they are shown. */
  | { readonly kind: 'output'; readonly bytes: Uint8Array; readonly end: number }
  /** In place of all output before `end`. */
  | { readonly kind: 'screen'; readonly screen: string; readonly size: Size; readonly end: number }
  | { readonly kind: 'resized'; readonly size: Size }
  | {
      readonly kind: 'control';
      readonly event: 'granted' | 'taken' | 'requested' | 'released' | 'refused';
      readonly role: Role;
      readonly actor: Actor | undefined;
      readonly subject: string | undefined;
    }
  | { readonly kind: 'presence'; readonly viewers: readonly Viewer[] }
  /** After the last byte of output. */
  | { readonly kind: 'exit'; readonly outcome: Outcome; readonly end: number }
  /** The two sides disagree: this connection is of no use, another one may be. */
  | { readonly kind: 'broken'; readonly why: string };

export interface Ready {
  readonly shellId: string;
  readonly state: 'fresh' | 'resumed' | 'snapshot';
  readonly role: Role;
  readonly size: Size;
}

export class ShellStream {
  readonly #options: StartOptions;
  readonly #outbox = new Outbox(INPUT_MAX_BYTES);
  #inbox = new Inbox();
  /** Known from the first `ready` on. */
  #shellId: string | undefined;
  /** Whether output was seen: without, a resume would ask for what it never had. */
  #hasOutput = false;
  #size: Size;
  #role: Role = 'writer';
  /** On this connection: whether `ready` came, and what was sent of the input. */
  #isReady = false;
  #sent = 0;
  #screen: { readonly parts: string[]; chars: number } | undefined;

  constructor(options: StartOptions) {
    this.#options = options;
    this.#size = options.size;
    if (options.shellId !== undefined && options.shellId !== 'new') this.#shellId = options.shellId;
  }

  get shellId(): string | undefined {
    return this.#shellId;
  }

  get role(): Role {
    return this.#role;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** How much more input can be kept. */
  get roomBytes(): number {
    return this.#outbox.roomBytes;
  }

  /** Input the shell is not known to have. */
  get unackedBytes(): number {
    return this.#outbox.end - this.#outbox.start;
  }

  /** Begins a connection, and says what to send on it first. */
  start(): StartFrame {
    this.#isReady = false;
    this.#screen = undefined;
    const { clientId, size, ...options } = { ...this.#options, size: this.#size };
    return {
      type: 'start',
      client_id: clientId,
      cols: size.cols,
      rows: size.rows,
      input_offset: this.#outbox.start,
      ...toShellId(this.#shellId ?? options.shellId),
      ...(this.#hasOutput ? { offset: this.#inbox.next } : toHistory(options.history)),
      ...(options.observe ? { observe: true } : {}),
      ...(options.term === undefined ? {} : { term: options.term }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.command === undefined ? {} : { command: [...options.command] }),
    };
  }

  /** The next connection gets the screen as it is, in place of the output since the last one. */
  forgetOutput(): void {
    this.#hasOutput = false;
  }

  /** The connection is gone. */
  cut(): void {
    this.#isReady = false;
    this.#screen = undefined;
  }

  /** Takes all of it, or none when it is more than is kept. */
  write(bytes: Uint8Array): 'taken' | 'full' {
    return this.#outbox.append(bytes);
  }

  resize(size: Size): ShellClientFrame | undefined {
    this.#size = size;
    if (!this.#isReady || this.#role !== 'writer') return undefined;
    return { type: 'resize', ...size };
  }

  /** The next input to send, until there is none or enough is under way. */
  nextInput(): DataFrame<'stdin'> | undefined {
    if (!this.#isReady || this.#role !== 'writer') return undefined;
    const from = Math.max(this.#sent, this.#outbox.start);
    if (from === this.#outbox.end) return undefined;
    const roomBytes = Math.max(0, this.#outbox.start + INPUT_WINDOW_BYTES - from);
    const read = this.#outbox.pendingFrom(from, Math.min(roomBytes, DATA_MAX_BYTES));
    if (read.kind !== 'bytes' || read.bytes.length === 0) return undefined;
    this.#sent = read.offset + read.bytes.length;
    return { type: 'stdin', data: read.bytes, offset: read.offset };
  }

  receive(frame: ShellServerFrame): ShellEvent | undefined {
    switch (frame.type) {
      case 'stdout':
        return this.#output(frame);
      case 'ready':
        return this.#ready(frame);
      case 'snapshot':
        return this.#snapshot(frame);
      case 'ack':
        return this.#acked(frame.offset);
      case 'exit':
        return this.#exit(frame);
      case 'resize':
        return { kind: 'resized', size: { cols: frame.cols, rows: frame.rows } };
      case 'control':
        return this.#control(frame);
      case 'presence':
        return { kind: 'presence', viewers: frame.viewers.map(toViewer) };
      default:
        // Those that every endpoint has belong to the connection.
        return undefined;
    }
  }

  #output({ data, offset }: DataFrame): ShellEvent | undefined {
    if (!this.#isReady) return broken('output came before ready');
    const accepted = this.#inbox.accept(offset ?? this.#inbox.next, data);
    if (accepted.kind === 'gap') {
      return broken(`output is missing from ${accepted.expected} to ${offset}`);
    }
    if (accepted.bytes.length === 0) return undefined;
    this.#hasOutput = true;
    return { kind: 'output', bytes: accepted.bytes, end: this.#inbox.next };
  }

  #ready(frame: ReadyFrame): ShellEvent | undefined {
    const { shell_id: shellId, state, role, offset, cols, rows } = frame;
    if (this.#isReady) return broken('a second ready came');
    if (state === 'resumed' && offset > this.#inbox.next) {
      this.forgetOutput();
      return broken(`it resumes at ${offset} and not at ${this.#inbox.next}`);
    }
    const acked = this.#outbox.ack(Math.min(frame.input_offset, this.#outbox.end));
    this.#sent = acked.kind === 'stale' ? acked.start : this.#outbox.start;
    if (state === 'fresh') this.#inbox = new Inbox(offset);
    if (state !== 'snapshot') this.#hasOutput = true;
    this.#shellId = shellId;
    this.#role = role;
    this.#isReady = true;
    return { kind: 'ready', ready: { shellId, state, role, size: { cols, rows } } };
  }

  #snapshot(frame: SnapshotFrame): ShellEvent | undefined {
    if (!this.#isReady) return broken('a screen came before ready');
    this.#screen ??= { parts: [], chars: 0 };
    const { parts } = this.#screen;
    parts.push(frame.screen);
    this.#screen.chars += frame.screen.length;
    if (this.#screen.chars > SNAPSHOT_MAX_CHARS) return broken('the screen is too long');
    if (frame.more === true) return undefined;
    this.#screen = undefined;
    this.#inbox = new Inbox(frame.offset);
    this.#hasOutput = true;
    const { cols, rows, offset: end } = frame;
    return { kind: 'screen', screen: parts.join(''), size: { cols, rows }, end };
  }

  #acked(offset: number): ShellEvent | undefined {
    const acked = this.#outbox.ack(offset);
    return acked.kind === 'ahead' ? broken('input was acknowledged that never was') : undefined;
  }

  #exit({ type: _, offset, ...fields }: ExitFrame): ShellEvent {
    if (offset !== this.#inbox.next) {
      return broken(`it ended at ${offset} and not at ${this.#inbox.next}`);
    }
    const { origin, exit_code: exitCode, signal, timed_out: timedOut, oom } = fields;
    return { kind: 'exit', outcome: { origin, exitCode, signal, timedOut, oom }, end: offset };
  }

  #control(frame: Extract<ShellServerFrame, { type: 'control' }>): ShellEvent {
    const { event, role, actor, subject } = frame;
    this.#role = role;
    // What was under way when the keyboard changed hands was not taken; it is sent again when it is ours again.
    if (role === 'writer') this.#sent = this.#outbox.start;
    return { kind: 'control', event, role, actor, subject };
  }
}

function broken(why: string): ShellEvent {
  return { kind: 'broken', why };
}

function toShellId(shellId: string | undefined): { shell_id?: string } {
  return shellId === undefined ? {} : { shell_id: shellId };
}

function toHistory(history: number | undefined): { history?: number } {
  return history === undefined ? {} : { history };
}

function toViewer(
  viewer: Extract<ShellServerFrame, { type: 'presence' }>['viewers'][number],
): Viewer {
  const { actor, role, client_id: clientId, subject } = viewer;
  return { actor, role, clientId, subject };
}
