/** The one door to a thread's sandbox, for every command that works in one: by a server, or by access given from outside. */
import type { ThreadId } from '../../protocol/ids.js';
import type { NegotiateOptions, SessionMode, WaitOptions } from './negotiate.js';
import type { Session } from './session.js';
import type { SessionWorld } from './world.js';

export interface OpenOptions extends NegotiateOptions, WaitOptions {
  /** May be left out only where access is given, which names its thread. */
  readonly thread?: ThreadId | undefined;
  /** `ensure` by default. */
  readonly mode?: SessionMode | undefined;
  /** Whether the lease is lengthened on a timer while the session is open; yes by default. */
  readonly keepAlive?: boolean | undefined;
}

export async function openSession(world: SessionWorld, options: OpenOptions): Promise<Session> {
  const given = world.givenAccess();
  if (given !== undefined) {
    const { openGivenSession } = await import('./given-session.js');
    return openGivenSession(world, given, options.thread);
  }
  const { openBrokerSession } = await import('./broker-session.js');
  return openBrokerSession(world, options);
}
