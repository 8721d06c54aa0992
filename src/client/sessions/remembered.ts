/** Negotiates with what is remembered of the thread as a hint, and remembers what came of it. */
import { AilsdError } from '../../protocol/errors.js';
import type { SessionId, ThreadId } from '../../protocol/ids.js';
import type { Asker } from './asker.js';
import { type CacheKey, SessionCache } from './cache.js';
import {
  type NegotiateRequest,
  type Negotiation,
  negotiate,
  type WaitOptions,
} from './negotiate.js';
import type { SessionWorld } from './world.js';

export async function negotiateRemembered(
  world: SessionWorld,
  asker: Asker,
  request: NegotiateRequest,
  wait: WaitOptions = {},
): Promise<Negotiation> {
  const cache = openCache(world);
  const key = await keyOf(world, asker, request.thread, wait.signal);
  // Only who may create can be helped by a hint: the others get what there is.
  const remembered = request.mode === 'ensure' ? cache.get(key)?.sandboxId : undefined;
  const sandboxHint = request.sandboxHint ?? remembered;
  try {
    const hinted = { ...request, sandboxHint };
    const negotiation = await withoutBadHint(hinted, (one) => negotiate(world, asker, one, wait));
    cache.set(key, negotiation.negotiated);
    return negotiation;
  } catch (error) {
    if (isGone(error)) cache.forget(key);
    throw error;
  }

  /** A memory that has become wrong is our mistake and nobody else's: asked again without it. */
  async function withoutBadHint(
    hinted: NegotiateRequest,
    ask: (request: NegotiateRequest) => Promise<Negotiation>,
  ): Promise<Negotiation> {
    try {
      return await ask(hinted);
    } catch (error) {
      const isOurs = remembered !== undefined && request.sandboxHint === undefined;
      if (!isOurs || !isConflict(error)) throw error;
      cache.forget(key);
      return ask(request);
    }
  }
}

/**
 * Does something to the thread's session: the one that is remembered, and where that is gone the one there is. Looking
 * it up costs a request and a token that nobody uses, which is why the memory comes first.
 */
export async function onSession<T>(
  world: SessionWorld,
  asker: Asker,
  thread: ThreadId,
  work: (sessionId: SessionId) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const cache = openCache(world);
  const key = await keyOf(world, asker, thread, signal);
  const remembered = cache.get(key);
  if (remembered !== undefined) {
    try {
      return await work(remembered.sessionId);
    } catch (error) {
      if (!isGone(error)) throw error;
      cache.forget(key);
    }
  }
  const { negotiated } = await negotiateRemembered(
    world,
    asker,
    { thread, mode: 'get' },
    { signal },
  );
  return work(negotiated.sessionId);
}

/** After letting go of it. */
export async function forgetSession(
  world: SessionWorld,
  asker: Asker,
  thread: ThreadId,
  signal?: AbortSignal,
): Promise<void> {
  openCache(world).forget(await keyOf(world, asker, thread, signal));
}

/** The server says that there is no such session, or none any more. */
export function isGone(error: unknown): boolean {
  return error instanceof AilsdError && GONE.has(error.code);
}

const GONE = new Set<string>(['SESSION_NOT_FOUND', 'BINDING_NOT_FOUND', 'SESSION_EXPIRED']);

function isConflict(error: unknown): boolean {
  if (!(error instanceof AilsdError)) return false;
  return error.code === 'BINDING_CONFLICT' || error.code === 'SESSION_CONFLICT';
}

function openCache(world: SessionWorld): SessionCache {
  const { cacheFolder, userId, clock, trace } = world;
  return new SessionCache({ folder: cacheFolder, userId, clock, trace });
}

async function keyOf(
  world: SessionWorld,
  asker: Asker,
  thread: ThreadId,
  signal: AbortSignal | undefined,
): Promise<CacheKey> {
  return { server: world.url(), account: await asker.account(signal), thread };
}
