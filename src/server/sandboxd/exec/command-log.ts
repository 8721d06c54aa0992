/** What a command wrote, as JSON lines in the order in which it came; with `follow` on and on until it ends. */
import { onAbort } from '../../../base/abort.js';
import { cutUtf8 } from '../../../base/bytes.js';
import type { CommandLogQuery, LogChunk } from '../../../protocol/shapes/commands.js';
import type { Command } from './command.js';
import { toText } from './command-views.js';
import type { StreamName } from './program.js';

const PIECE_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

type Offsets = Record<StreamName, number>;

export async function* logOf(
  command: Command,
  asked: CommandLogQuery,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { follow = false, tail, stdout_offset: stdout = 0, stderr_offset: stderr = 0 } = asked;
  const next: Offsets =
    tail === undefined ? { stdout, stderr } : await lastLines(command, tail, { stdout, stderr });
  // So that headers are out before anything is said.
  yield '';
  for (;;) {
    const isLast = command.outcome !== undefined;
    const changed = changeOf(command, signal);
    let isSome = false;
    for await (const line of fresh(command, next)) {
      isSome = true;
      yield line;
      if (signal.aborted) break;
    }
    if (signal.aborted || (!isSome && (isLast || !follow))) return changed.callOff();
    if (isSome || isLast) changed.callOff();
    else await changed.promise;
  }
}

/** What there is from these offsets on, piece by piece as it came; the offsets move with it. */
async function* fresh(command: Command, next: Offsets): AsyncGenerator<string> {
  for (const { stream, atMs, end } of segmentsOf(command)) {
    while (next[stream] < end) {
      const log = command.logs[stream];
      const from = Math.max(next[stream], log.start);
      if (from >= end) break;
      const read = await log.readFrom(from, Math.min(PIECE_BYTES, end - from));
      if (read.length === 0) {
        next[stream] = end;
        break;
      }
      const isInside = read.length === PIECE_BYTES;
      const bytes = isInside ? cutUtf8(read, PIECE_BYTES - MAX_CHARACTER_BYTES) : read;
      next[stream] = from + bytes.length;
      yield lineOf(stream, from, bytes, atMs);
    }
  }
}

/** So that a cut falls between characters. */
const MAX_CHARACTER_BYTES = 4;

interface Segment {
  readonly stream: StreamName;
  readonly atMs: number;
  readonly start: number;
  readonly end: number;
}

/** Without a journal, as of a command from before a restart: one output after the other. */
function segmentsOf(command: Command): readonly Segment[] {
  const { logs, startedAtMs: atMs } = command;
  const { pieces } = command.journal;
  const all = pieces.length > 0 ? pieces : STREAMS.map((stream) => ({ stream, offset: 0, atMs }));
  const ends: Offsets = { stdout: logs.stdout.end, stderr: logs.stderr.end };
  const segments: Segment[] = [];
  for (const { stream, offset, atMs: at } of [...all].reverse()) {
    segments.push({ stream, atMs: at, start: offset, end: ends[stream] });
    ends[stream] = offset;
  }
  return segments.reverse();
}

const STREAMS = ['stdout', 'stderr'] as const;

function lineOf(stream: StreamName, offset: number, bytes: Uint8Array, atMs: number): string {
  const at = new Date(atMs).toISOString();
  const chunk: LogChunk = { at, stream, offset, ...toText(bytes) };
  return `${JSON.stringify(chunk)}\n`;
}

/** Where to begin so that so many lines are left, counted over both outputs from the last on. */
async function lastLines(command: Command, tail: number, floor: Offsets): Promise<Offsets> {
  const { logs } = command;
  const from: Offsets = { stdout: logs.stdout.end, stderr: logs.stderr.end };
  let left = tail;
  let isAtEnd = true;
  for (const { stream, start, end } of [...segmentsOf(command)].reverse()) {
    const lowest = Math.max(start, floor[stream], logs[stream].start);
    for (let at = end; at > lowest; ) {
      if (left <= 0) return from;
      const begin = Math.max(lowest, at - PIECE_BYTES);
      const bytes = await logs[stream].readFrom(begin, at - begin);
      for (let index = bytes.length - 1; index >= 0; index--) {
        const isLineEnd = bytes[index] === NEWLINE;
        if (isLineEnd && !isAtEnd) left -= 1;
        isAtEnd = false;
        if (left <= 0) return { ...from, [stream]: begin + index + 1 };
      }
      from[stream] = begin;
      at = begin;
    }
  }
  return {
    stdout: Math.max(from.stdout, floor.stdout),
    stderr: Math.max(from.stderr, floor.stderr),
  };
}

function changeOf(command: Command, signal: AbortSignal) {
  let settle = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    settle = resolve;
  });
  const unwatch = command.watch(() => callOff());
  // Told at once where it has aborted already.
  let unlisten = (): void => undefined;
  const callOff = (): void => {
    unwatch();
    unlisten();
    settle();
  };
  unlisten = onAbort(signal, () => callOff());
  return { promise, callOff };
}
