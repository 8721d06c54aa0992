/** One connection that follows a command: what of each output it has, how much more it may be sent, and word of its input. */

import type { ExecServerFrame } from '../../../protocol/exec-frames.js';
import { DATA_MAX_BYTES } from '../../../protocol/frames.js';
import { SendWindow } from '../../../stream/window.js';
import type { Peer } from '../door/endpoint.js';
import type { Command, Follower } from './command.js';
import type { StreamName } from './program.js';

/** Of each output, on its way to the client. */
export const WINDOW_BYTES = 512 * 1024;
/** Of each output, waiting to be sent: then the program waits. */
const BEHIND_BYTES = 256 * 1024;
/** Input for a program that does not read: then the client is not read. A client that heeds acks never comes so far. */
const INPUT_MAX_BYTES = 4 * 1024 * 1024;
const ACK_DELAY_MS = 20;
const ACK_EVERY_BYTES = 64 * 1024;

type Offsets = Readonly<Record<StreamName, number>>;

export class ExecViewer implements Follower {
  readonly command: Command;
  readonly #peer: Peer;
  readonly #onExit: () => void;
  readonly #windows: Readonly<Record<StreamName, SendWindow>>;
  /** Reads from the file that are under way. */
  readonly #reading = new Set<StreamName>();
  /** Whether the client acknowledges output; of one that does not, what has left our process counts as taken. */
  #isAcking = false;
  #isHolding = false;
  #acked: number;
  #ackTimer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(peer: Peer, command: Command, from: Offsets, onExit: () => void) {
    this.#peer = peer;
    this.command = command;
    this.#onExit = onExit;
    this.#acked = command.appliedOffset;
    this.#windows = {
      stdout: new SendWindow(WINDOW_BYTES, from.stdout),
      stderr: new SendWindow(WINDOW_BYTES, from.stderr),
    };
  }

  /** After `ready` has been sent. */
  begin(): void {
    this.command.follow(this);
    for (const stream of STREAMS) {
      this.command.logs[stream].release(this.#windows[stream].acked);
      this.command.pace(stream);
    }
    this.#pumpAll();
  }

  fresh(stream: StreamName, offset: number, bytes: Uint8Array): void {
    const window = this.#windows[stream];
    const isNext = window.sent === offset && bytes.length <= DATA_MAX_BYTES;
    if (isNext && window.send(bytes.length) === 'sent') this.#send(stream, offset, bytes);
    else this.#pump(stream);
  }

  isBehind(stream: StreamName): boolean {
    return this.command.logs[stream].end - this.#windows[stream].sent >= BEHIND_BYTES;
  }

  applied(): void {
    if (this.#isOver) return;
    if (this.#isHolding && this.command.unappliedBytes < INPUT_MAX_BYTES / 2) {
      this.#isHolding = false;
      this.#peer.release();
    }
    if (this.command.appliedOffset - this.#acked >= ACK_EVERY_BYTES) this.#acknowledge();
    else this.#ackTimer ??= setTimeout(() => this.#acknowledge(), ACK_DELAY_MS);
  }

  ended(): void {
    this.#pumpAll();
  }

  /** The client has come back by another connection: this one is told nothing more. */
  replaced(): void {
    this.#stop();
  }

  /** The line is gone, or the client has left. */
  leave(): void {
    this.#stop();
    this.command.unfollow(this);
  }

  ack(stream: StreamName, offset: number): void {
    this.#isAcking = true;
    const window = this.#windows[stream];
    window.ack(Math.min(offset, window.sent));
    this.#advanced(stream);
  }

  drained(): void {
    // While its own frames are not read, its acks are not either: waiting for them would be for ever.
    if (this.#isAcking && !this.#isHolding) return;
    for (const stream of STREAMS) {
      const window = this.#windows[stream];
      window.ack(Math.max(window.acked, window.sent - this.#peer.bufferedBytes));
      this.#advanced(stream);
    }
  }

  input(bytes: Uint8Array, offset: number | undefined): 'taken' | 'gap' {
    if (this.command.input(bytes, offset).kind === 'gap') return 'gap';
    if (!this.#isHolding && this.command.unappliedBytes >= INPUT_MAX_BYTES) {
      this.#isHolding = true;
      this.#peer.hold();
    }
    return 'taken';
  }

  #advanced(stream: StreamName): void {
    if (this.#isOver) return;
    this.command.logs[stream].release(this.#windows[stream].acked);
    this.#pump(stream);
    this.command.pace(stream);
    this.#finish();
  }

  #pumpAll(): void {
    for (const stream of STREAMS) this.#pump(stream);
    this.#finish();
  }

  /** As much as there is and as it may have. */
  #pump(stream: StreamName): void {
    const log = this.command.logs[stream];
    const window = this.#windows[stream];
    while (!this.#isOver && !this.#reading.has(stream)) {
      const { sent, available } = window;
      const bytes = Math.min(log.end - sent, available, DATA_MAX_BYTES);
      if (bytes <= 0) return;
      const read = log.read(sent, bytes);
      if (read.kind === 'gone') window.restart(read.start);
      else if (read.kind === 'stored') this.#await(stream, read.bytes);
      else {
        window.send(read.bytes.length);
        this.#send(stream, sent, read.bytes);
      }
    }
  }

  #await(stream: StreamName, reading: Promise<Uint8Array>): void {
    this.#reading.add(stream);
    const { sent } = this.#windows[stream];
    reading.then((bytes) => {
      this.#reading.delete(stream);
      if (this.#isOver) return;
      const log = this.command.logs[stream];
      // A file that can't be read any more: what is left is in memory.
      if (bytes.length === 0) this.#windows[stream].restart(log.memoryStart);
      else if (this.#windows[stream].send(bytes.length) === 'sent') this.#send(stream, sent, bytes);
      this.#advanced(stream);
    });
  }

  #send(stream: StreamName, offset: number, data: Uint8Array): void {
    this.#peer.send({ type: stream, offset, data });
  }

  #acknowledge(): void {
    clearTimeout(this.#ackTimer);
    this.#ackTimer = undefined;
    this.#acked = this.command.appliedOffset;
    const ack = { type: 'ack', offset: this.#acked } satisfies ExecServerFrame;
    this.#peer.send(ack);
  }

  /** The exit, once everything before it has been sent. */
  #finish(): void {
    const { outcome, logs } = this.command;
    if (this.#isOver || outcome === undefined || this.#reading.size > 0) return;
    for (const stream of STREAMS) if (this.#windows[stream].sent < logs[stream].end) return;
    this.#peer.send(exitFrameOf(this.command, outcome));
    this.leave();
    this.#onExit();
  }

  #stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#ackTimer);
    if (this.#isHolding) this.#peer.release();
  }
}

const STREAMS = ['stdout', 'stderr'] as const;

function exitFrameOf({ logs }: Command, outcome: NonNullable<Command['outcome']>) {
  const { origin, exit_code, signal, timed_out, oom, stdout_sha256, stderr_sha256 } = outcome;
  return {
    type: 'exit',
    origin,
    ...(exit_code === undefined ? {} : { exit_code }),
    ...(signal === undefined ? {} : { signal }),
    timed_out,
    oom,
    stdout_offset: logs.stdout.totalBytes,
    stderr_offset: logs.stderr.totalBytes,
    stdout_truncated: logs.stdout.isTruncated,
    stderr_truncated: logs.stderr.isTruncated,
    ...(stdout_sha256 === undefined ? {} : { stdout_sha256 }),
    ...(stderr_sha256 === undefined ? {} : { stderr_sha256 }),
  } satisfies ExecServerFrame;
}
