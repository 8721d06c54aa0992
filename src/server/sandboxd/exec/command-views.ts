/** A command in the words of HTTP answers. */
import { decodeUtf8 } from '../../../base/bytes.js';
import type { SandboxId } from '../../../protocol/ids.js';
import type { CommandState } from '../../../protocol/shapes/commands.js';
import type { Command } from './command.js';
import type { OutputLog } from './output-log.js';

export function toState(command: Command, sandboxId: SandboxId): CommandState {
  const { id, argv, startedAtMs, endedAtMs, outcome } = command;
  return {
    id,
    sandbox_id: sandboxId,
    state: outcome === undefined ? 'running' : 'ended',
    argv: [...argv],
    started_at: new Date(startedAtMs).toISOString(),
    ...(endedAtMs === undefined
      ? {}
      : {
          ended_at: new Date(endedAtMs).toISOString(),
          duration_ms: Math.max(0, Math.round(endedAtMs - startedAtMs)),
        }),
    ...(outcome === undefined ? {} : { outcome }),
  };
}

/** Of one that has ended; of each output its beginning, up to so many bytes. */
export async function toResult(
  command: Command,
  sandboxId: SandboxId,
  maxBytes: { readonly stdout: number; readonly stderr: number },
): Promise<object> {
  const { stdout, stderr } = command.logs;
  return {
    ...toState(command, sandboxId),
    ...prefixed('stdout', stdout.totalBytes, await beginning(stdout, maxBytes.stdout)),
    ...prefixed('stderr', stderr.totalBytes, await beginning(stderr, maxBytes.stderr)),
  };
}

function prefixed(name: 'stdout' | 'stderr', totalBytes: number, bytes: Uint8Array): object {
  const { data, encoding } = toText(bytes);
  return {
    [name]: data,
    ...(encoding === undefined ? {} : { [`${name}_encoding`]: encoding }),
    [`${name}_bytes`]: totalBytes,
    [`${name}_truncated`]: totalBytes > bytes.length,
  };
}

/** Bytes that are not UTF-8 travel as base64. */
export function toText(bytes: Uint8Array): { readonly data: string; readonly encoding?: 'base64' } {
  const text = decodeUtf8(bytes);
  if (text !== undefined) return { data: text };
  return { data: Buffer.from(bytes).toString('base64'), encoding: 'base64' };
}

async function beginning(log: OutputLog, maxBytes: number): Promise<Uint8Array> {
  const end = Math.min(log.end, maxBytes);
  const pieces: Uint8Array[] = [];
  // Where the beginning is gone there is none: what follows would be taken for it.
  for (let at = 0; at < end && log.start <= at; ) {
    const piece = await log.readFrom(at, Math.min(READ_BYTES, end - at));
    if (piece.length === 0) break;
    pieces.push(piece);
    at += piece.length;
  }
  return Buffer.concat(pieces);
}

const READ_BYTES = 1024 * 1024;
