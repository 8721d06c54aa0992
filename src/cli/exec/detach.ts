/** `exec --detach`: starts the command and leaves it; its id is what is printed. */
import { systemClock } from '../../base/clock.js';
import { Commands } from '../../client/exec/commands.js';
import type { Http } from '../../client/http/http.js';
import type { Session } from '../../client/sessions/session.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import type { CommandOptions } from './options.js';

export interface DetachRequest {
  readonly commandId: string;
  readonly argv: readonly string[];
  readonly options: CommandOptions;
}

export async function startDetached(
  context: Context,
  { session, http }: { readonly session: Session; readonly http: Http },
  { commandId, argv, options }: DetachRequest,
): Promise<void> {
  const commands = new Commands(session, { http, clock: systemClock, random: Math.random });
  const { workdir: cwd, env, timeout } = options;
  const timeoutMs = timeout === undefined ? undefined : timeout * 1000;
  const state = await commands.start({ commandId, argv, cwd, env, timeoutMs }, context.signal);
  context.output.result(state, () => commandId);
  const thread = escapeText(session.threadId);
  context.output.notice(`it runs on its own: ailsd job logs ${thread} ${commandId} --follow`);
}
