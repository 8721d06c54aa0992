/** Which sandbox a word on the command line means: one by its id, or the one of a thread. */
import type { Asker } from '../../client/sessions/asker.js';
import { callForPage } from '../../client/sessions/call.js';
import { negotiateRemembered } from '../../client/sessions/remembered.js';
import type { SessionWorld } from '../../client/sessions/world.js';
import { AilsdError } from '../../protocol/errors.js';
import { ID_PREFIXES, type ThreadId } from '../../protocol/ids.js';
import type { Context } from '../context.js';
import { threadOf } from './thread-argument.js';

/** Does it to that sandbox. A thread may be called `sb_…` too: where there is no such sandbox, it is meant. */
export async function onSandbox<T>(
  context: Context,
  world: SessionWorld,
  asker: Asker,
  named: string | undefined,
  work: (sandboxId: string) => Promise<T>,
): Promise<T> {
  if (named?.startsWith(ID_PREFIXES.sandbox) === true) {
    try {
      return await work(named);
    } catch (error) {
      const isUnknown = error instanceof AilsdError && error.row.exit === NOT_FOUND_EXIT;
      const found = isUnknown ? await listed(context, asker, threadOf(context, named)) : undefined;
      if (found === undefined) throw error;
      return work(found);
    }
  }
  const thread = threadOf(context, named);
  return work(
    (await listed(context, asker, thread)) ?? (await shared(context, world, asker, thread)),
  );
}

const NOT_FOUND_EXIT = 3;

async function listed(
  { signal }: Context,
  asker: Asker,
  thread: ThreadId,
): Promise<string | undefined> {
  const query = { thread_id: thread, limit: 1 };
  const { items } = await callForPage(asker, 'listSandboxes', { parameters: {}, query, signal });
  const id = items[0]?.['id'];
  return typeof id === 'string' ? id : undefined;
}

/** Somebody else's that was shared with us is on no list of ours; asking for it also says whether it is there at all. */
async function shared(
  { signal }: Context,
  world: SessionWorld,
  asker: Asker,
  thread: ThreadId,
): Promise<string> {
  const request = { thread, mode: 'get' } as const;
  const { negotiated } = await negotiateRemembered(world, asker, request, { signal });
  return negotiated.sandboxId;
}
