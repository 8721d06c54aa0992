/** Prints access that was negotiated elsewhere: what it is for, and until when. No server is asked. */
import { openGivenSession, parseGivenAccess } from '../../client/sessions/given-session.js';
import type { GivenAccess, SessionWorld } from '../../client/sessions/world.js';
import type { ThreadId } from '../../protocol/ids.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { timeText } from '../login/time-text.js';
import { fieldLines } from './document-text.js';

export async function printGivenAccess(
  context: Context,
  world: SessionWorld,
  given: GivenAccess,
  thread: ThreadId | undefined,
): Promise<void> {
  await using session = openGivenSession(world, given, thread);
  // Says so where it has ended.
  await session.token();
  const access = parseGivenAccess(given);
  const { output, style } = context;
  output.result(access, () => {
    const rows: [string, string][] = [
      ['sandbox', `${escapeText(session.sandboxId)} at ${escapeText(session.provider)}`],
      ['session', escapeText(session.sessionId)],
      ['http', escapeText(session.httpUrl)],
      ['ws', escapeText(session.wsUrl)],
      ['token', `until ${timeText(session.expiresAtMs)}, and cannot be renewed`],
      ['from', escapeText(given.from)],
    ];
    const head = `${style.bold(escapeText(session.threadId))}, by access negotiated elsewhere`;
    return `${head}\n${fieldLines(rows, style)}`;
  });
}
