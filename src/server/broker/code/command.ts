/**
 * Runs one command in a sandbox over its exec socket. The command has an id of ours, so that a line which was cut is picked
 * up again where it was, and nothing runs twice.
 */
import type { LookupFunction } from 'node:net';
import { onAbort } from '../../../base/abort.js';
import type { Clock } from '../../../base/clock.js';
import { createDeferred } from '../../../base/deferred.js';
import type { Secret } from '../../../base/secret.js';
import { CLOSES } from '../../../protocol/closes.js';
import { AilsdError, isErrorCode } from '../../../protocol/errors.js';
import { type ExecClientFrame, execServerFrames } from '../../../protocol/exec-frames.js';
import { decodeFrame, encodeFrame, SUBPROTOCOLS } from '../../../protocol/frame-codec.js';
import { DATA_MAX_BYTES, MESSAGE_MAX_BYTES } from '../../../protocol/frames.js';
import { Inbox } from '../../../stream/inbox.js';
import type { Socket } from '../../http/websocket.js';
import { dialWebSocket } from '../../http/websocket-dial.js';
import { guardedLookup, placeOf, unreachable } from '../relay/address.js';

export interface CommandParts {
  readonly clock: Clock;
  readonly resolve?: LookupFunction | undefined;
}

/** Of a sandbox, and the right to run something in it. */
export interface CommandPlace {
  readonly wsUrl: string;
  readonly token: Secret;
  readonly requestId: string;
  /** Whether a sandbox whose line was cut may be expected back. */
  readonly isThere: () => Promise<boolean>;
}

export interface Command {
  readonly id: string;
  readonly argv: readonly string[];
  readonly input: Uint8Array;
  readonly timeoutMs: number;
  /** What is sent of each output; the rest is counted. */
  readonly outputMaxBytes: number;
  /** The next piece comes when it settles. */
  readonly onOutput: (stream: Stream, bytes: Uint8Array) => Promise<void>;
}

type Stream = 'stdout' | 'stderr';

export type CommandEnd = {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly isTimedOut: boolean;
  readonly isOom: boolean;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  readonly isStdoutTruncated: boolean;
  readonly isStderrTruncated: boolean;
};

const CONNECT_MS = 5_000;
/** A sandbox that is not back after this is lost. */
const AWAY_MS = 10_000;
const RETRY_MS = 100;
/** For the sandbox to end what has run out of time, and to say so. */
const LATE_MS = 10_000;
/** For what was killed to end. */
const KILLED_MS = 3_000;
/** Input that is under way without an answer. */
const INPUT_WINDOW_BYTES = 256 * 1024;

/** Rejects with the sandbox's error, with BACKEND_UNAVAILABLE when it is lost, and with the signal's reason: then it is killed. */
export function runCommand(
  parts: CommandParts,
  place: CommandPlace,
  command: Command,
  signal: AbortSignal,
): Promise<CommandEnd> {
  return new RunningCommand(parts, place, command).run(signal);
}

type Ended =
  | { readonly kind: 'exit'; readonly end: CommandEnd }
  | { readonly kind: 'cut' }
  | { readonly kind: 'refused'; readonly error: AilsdError };

class RunningCommand {
  readonly #parts: CommandParts;
  readonly #place: CommandPlace;
  readonly #command: Command;
  readonly #outputs: Readonly<Record<Stream, Inbox>> = { stdout: new Inbox(), stderr: new Inbox() };
  #socket: Socket | undefined;
  #isKilled = false;
  #isLate = false;
  #heardAtMs: number;

  constructor(parts: CommandParts, place: CommandPlace, command: Command) {
    this.#parts = parts;
    this.#place = place;
    this.#command = command;
    this.#heardAtMs = parts.clock.monotonic();
  }

  async run(signal: AbortSignal): Promise<CommandEnd> {
    signal.throwIfAborted();
    const { clock } = this.#parts;
    const over = new AbortController();
    const leave = onAbort(signal, () => this.#kill(over));
    const limitMs = this.#command.timeoutMs + LATE_MS;
    clock.sleep(limitMs, over.signal).then(
      () => {
        this.#isLate = true;
        this.#kill(over);
      },
      () => undefined,
    );
    try {
      for (;;) {
        const ended = await this.#connect(over.signal);
        if (ended.kind === 'exit') {
          if (signal.aborted) throw signal.reason;
          return ended.end;
        }
        if (ended.kind === 'refused') throw ended.error;
        if (over.signal.aborted) throw signal.aborted ? signal.reason : lost('it did not end');
        const awayMs = clock.monotonic() - this.#heardAtMs;
        if (awayMs > AWAY_MS || !(await this.#place.isThere())) throw lost('it is gone');
        await clock.sleep(RETRY_MS, over.signal).catch(() => undefined);
      }
    } finally {
      leave();
      over.abort();
      this.#socket?.close(CLOSES.done);
    }
  }

  /** Ends it as a whole; whoever waits for its end does so a while longer. */
  #kill(over: AbortController): void {
    if (this.#isKilled) return;
    this.#isKilled = true;
    this.#send({ type: 'signal', signal: 'SIGKILL' });
    const stop = (): void => {
      over.abort();
      this.#socket?.cut();
    };
    this.#parts.clock.sleep(KILLED_MS, over.signal).then(stop, () => undefined);
  }

  #send(frame: ExecClientFrame): void {
    this.#socket?.send(encodeFrame(frame, 'binary'));
  }

  /** One connection, to its end. */
  async #connect(signal: AbortSignal): Promise<Ended> {
    const { wsUrl, token, requestId } = this.#place;
    const { protocol, hostname, port, basePath } = placeOf(wsUrl);
    const host = hostname.includes(':') ? `[${hostname}]` : hostname;
    const ended = createDeferred<Ended>();
    let reading: Promise<void> = Promise.resolve();
    try {
      await dialWebSocket(
        {
          url: `${protocol === 'https:' ? 'wss' : 'ws'}://${host}:${port}${basePath}/v1/exec/ws`,
          protocols: [SUBPROTOCOLS.binary],
          headers: { authorization: `Bearer ${token.reveal()}`, 'x-request-id': requestId },
          handshakeTimeoutMs: CONNECT_MS,
          messageBytes: MESSAGE_MAX_BYTES,
          lookup: guardedLookup(this.#parts.resolve),
          signal,
        },
        (socket) => {
          this.#socket = socket;
          const connection = new Input(socket, this.#command.input);
          this.#start();
          return {
            // In their order, each after the one before was dealt with: nothing more is read meanwhile.
            message: (message) => {
              socket.pause();
              reading = reading
                .then(() => this.#read(message, connection, ended.resolve))
                .catch((error: unknown) => ended.reject(error))
                .finally(() => socket.resume());
            },
            closed: (code, reason) => {
              reading = reading.then(() => ended.resolve(endOf(code, reason)));
            },
          };
        },
      );
    } catch (thrown) {
      if (signal.aborted) return { kind: 'cut' };
      // Not reached at all: whether that is for good, the caller finds out.
      if (thrown instanceof AilsdError && thrown.code === 'BACKEND_UNAVAILABLE')
        return { kind: 'cut' };
      throw thrown;
    }
    return ended.promise;
  }

  #start(): void {
    const { id, argv, timeoutMs, outputMaxBytes } = this.#command;
    this.#send({
      type: 'start',
      argv: [...argv],
      command_id: id,
      stdout_offset: this.#outputs.stdout.next,
      stderr_offset: this.#outputs.stderr.next,
      timeout_ms: timeoutMs,
      limits: { stdout_bytes: outputMaxBytes, stderr_bytes: outputMaxBytes },
    });
    if (this.#isKilled) this.#send({ type: 'signal', signal: 'SIGKILL' });
  }

  async #read(
    message: string | Uint8Array,
    input: Input,
    settle: (ended: Ended) => void,
  ): Promise<void> {
    this.#heardAtMs = this.#parts.clock.monotonic();
    const decoded = decodeFrame(execServerFrames, message);
    if (!decoded.ok) return settle({ kind: 'refused', error: lost(decoded.error.message) });
    const { frame } = decoded;
    switch (frame.type) {
      case 'ready':
        return input.sendFrom(frame.input_offset);
      case 'ack':
        return input.acknowledged(frame.offset);
      case 'stdout':
      case 'stderr':
        return this.#take(frame.type, frame.offset, frame.data);
      case 'exit':
        return settle({
          kind: 'exit',
          end: {
            exitCode: frame.exit_code,
            signal: frame.signal,
            isTimedOut: frame.timed_out || this.#isLate,
            isOom: frame.oom,
            stdoutBytes: frame.stdout_offset,
            stderrBytes: frame.stderr_offset,
            isStdoutTruncated: frame.stdout_truncated,
            isStderrTruncated: frame.stderr_truncated,
          },
        });
      case 'error': {
        const code = isErrorCode(frame.code) ? frame.code : 'BACKEND_UNAVAILABLE';
        return settle({ kind: 'refused', error: new AilsdError(code, frame.message) });
      }
      default:
    }
  }

  async #take(stream: Stream, offset: number | undefined, data: Uint8Array): Promise<void> {
    const output = this.#outputs[stream];
    const accepted = output.accept(offset ?? output.next, data);
    if (accepted.kind === 'gap') throw lost('a part of the output is missing');
    if (accepted.bytes.length > 0) await this.#command.onOutput(stream, accepted.bytes);
    this.#send({ type: 'ack', stream, offset: output.next });
  }
}

/** What the command reads: no more of it is under way than its sandbox has room for. */
class Input {
  readonly #socket: Socket;
  readonly #bytes: Uint8Array;
  #sent = 0;
  #taken = 0;
  #isEnded = false;

  constructor(socket: Socket, bytes: Uint8Array) {
    this.#socket = socket;
    this.#bytes = bytes;
  }

  sendFrom(offset: number): void {
    this.#sent = offset;
    this.#taken = offset;
    this.#go();
  }

  acknowledged(offset: number): void {
    this.#taken = Math.max(this.#taken, offset);
    this.#go();
  }

  #go(): void {
    while (this.#sent < this.#bytes.length && this.#sent - this.#taken < INPUT_WINDOW_BYTES) {
      const data = this.#bytes.subarray(this.#sent, this.#sent + DATA_MAX_BYTES);
      this.#socket.send(encodeFrame({ type: 'stdin', offset: this.#sent, data }, 'binary'));
      this.#sent += data.length;
    }
    if (this.#sent < this.#bytes.length || this.#isEnded) return;
    this.#isEnded = true;
    const eof: ExecClientFrame = { type: 'eof', offset: this.#bytes.length };
    this.#socket.send(encodeFrame(eof, 'binary'));
  }
}

/** A refusal is an answer; anything else may be a line that was cut. */
function endOf(code: number, reason: string): Ended {
  if (code !== 1008) return { kind: 'cut' };
  return { kind: 'refused', error: lost(`it refused: ${reason}`) };
}

function lost(internal: string): AilsdError {
  return unreachable(internal);
}
