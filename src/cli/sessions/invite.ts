/** `share invite`: an S0 invite as the parts of its URL. It goes to stdout and nowhere else: not to a trace, not to a notice. */
import { Asker } from '../../client/sessions/asker.js';
import { callRoute } from '../../client/sessions/call.js';
import { onSession } from '../../client/sessions/remembered.js';
import type { InviteOptions } from '../commands/share.js';
import type { Context } from '../context.js';
import { fieldLines, shown, shownValue } from './document-text.js';
import { createSessionWorld } from './session-world.js';
import { threadOf } from './thread-argument.js';

export async function runInvite(
  context: Context,
  named: string | undefined,
  { endpoint, room, elevated = false }: InviteOptions,
): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal, output, style } = context;
  const thread = threadOf(context, named);
  const json = { endpoint, room, elevated: elevated ? true : undefined };
  const invite = await onSession(
    world,
    asker,
    thread,
    (id) => callRoute(asker, 'createInvite', { parameters: { session_id: id }, json, signal }),
    signal,
  );
  // What the caller adds to the address: S0's names.
  const isComputer = endpoint === 'computer';
  const query = isComputer ? { room: room ?? thread, elevated } : {};
  const document = { endpoint, ...invite, ...query };
  output.result(document, () =>
    fieldLines(
      [
        ['url', shown(invite, 'url')],
        ['token', shown(invite, 'token')],
        ['room', isComputer ? shownValue(room ?? thread) : ''],
        ['elevated', isComputer ? String(elevated) : ''],
        ['until', shown(invite, 'expires_at')],
      ],
      style,
    ),
  );
  output.notice('good once: open the url with these as its query, before its time is over');
}
