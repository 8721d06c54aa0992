/** A command and its outputs as one document, in the protocol's words for it. */
import { decodeUtf8 } from '../../base/bytes.js';
import type { OutputStream } from '../../client/exec/exec-words.js';
import type { Session } from '../../client/sessions/session.js';
import type { Executed } from './execute.js';
import { outcomeDocument } from './outcome-text.js';

export function resultDocument(
  { threadId, sandboxId }: Pick<Session, 'threadId' | 'sandboxId'>,
  { commandId, argv }: { readonly commandId: string; readonly argv: readonly string[] },
  executed: Executed,
): object {
  const { outcome, code, durationMs } = executed;
  return {
    id: commandId,
    state: outcome === undefined ? 'running' : 'ended',
    argv,
    thread_id: threadId,
    sandbox_id: sandboxId,
    duration_ms: durationMs,
    exit_code: code,
    outcome: outcome === undefined ? null : outcomeDocument(outcome),
    ...output('stdout', executed),
    ...output('stderr', executed),
  };
}

/** Bytes that are not UTF-8 travel as base64, and say so. */
function output(stream: OutputStream, { captured, outcome, missing }: Executed): object {
  const bytes = captured?.kept(stream) ?? new Uint8Array();
  const text = decodeUtf8(bytes);
  const summary = outcome?.[stream];
  return {
    [stream]: text ?? Buffer.from(bytes).toString('base64'),
    ...(text === undefined ? { [`${stream}_encoding`]: 'base64' } : {}),
    [`${stream}_bytes`]: summary?.bytes ?? bytes.length,
    [`${stream}_truncated`]: summary?.truncated === true || missing[stream] > 0,
  };
}
