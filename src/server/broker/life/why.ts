/** Says what keeps a sandbox alive, until when, and what happens then: the same rules the reaper goes by. */
import type { Activity } from '../../providers/provider.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { BrokerParts, Replica } from '../parts.js';
import { providerNamed } from './providers.js';
import { within } from './within.js';

export interface Keeper {
  readonly by: 'lease' | 'shells' | 'viewers' | 'commands';
  readonly count?: number | undefined;
  readonly untilMs?: number | undefined;
}

export interface Next {
  readonly atMs: number;
  readonly state: SandboxRecord['state'];
  readonly because: 'idle_timeout' | 'hard_ttl' | 'start_deadline';
}

export interface Why {
  readonly nowMs: number;
  readonly keptBy: readonly Keeper[];
  readonly isActivityKnown: boolean;
  readonly next: Next;
}

/** A look at the sandbox that takes longer than this tells nothing; the rest is told all the same. */
const LOOK_TIMEOUT_MS = 2_000;

export async function explain(
  parts: BrokerParts,
  replica: Replica,
  sandbox: SandboxRecord,
): Promise<Why> {
  const activity = sandbox.state === 'active' ? await look(parts, replica, sandbox) : undefined;
  const nowMs = await parts.db.now();
  const keptBy = sandbox.state === 'active' ? keepersOf(sandbox, activity, nowMs) : [];
  const isActivityKnown = activity !== undefined;
  return { nowMs, keptBy, isActivityKnown, next: nextOf(parts, sandbox, keptBy, nowMs) };
}

async function look(
  { providers, clock, logger }: BrokerParts,
  { signal }: Replica,
  { id, provider }: SandboxRecord,
): Promise<Activity | undefined> {
  try {
    const view = await within({ clock, ms: LOOK_TIMEOUT_MS, parent: signal }, 'the look', (cut) =>
      providerNamed(providers, provider).inspect(id, cut),
    );
    return view?.activity;
  } catch (error) {
    logger.warn('a sandbox could not be looked at', { sandbox_id: id, error });
    return undefined;
  }
}

function keepersOf(
  { leaseExpiresAtMs }: SandboxRecord,
  activity: Activity | undefined,
  nowMs: number,
): readonly Keeper[] {
  const keepers: Keeper[] = [];
  if (leaseExpiresAtMs > nowMs) keepers.push({ by: 'lease', untilMs: leaseExpiresAtMs });
  if (activity === undefined) return keepers;
  const { openShells, attachedViewers, runningCommands } = activity;
  if (openShells > 0) keepers.push({ by: 'shells', count: openShells });
  if (attachedViewers > 0) keepers.push({ by: 'viewers', count: attachedViewers });
  if (runningCommands > 0) keepers.push({ by: 'commands', count: runningCommands });
  return keepers;
}

function nextOf(
  { config }: BrokerParts,
  sandbox: SandboxRecord,
  keptBy: readonly Keeper[],
  nowMs: number,
): Next {
  const { state, hardExpiresAtMs, leaseExpiresAtMs } = sandbox;
  const end = { atMs: hardExpiresAtMs, state: 'terminated', because: 'hard_ttl' } as const;
  switch (state) {
    case 'provisioning': {
      const atMs = sandbox.lastActiveAtMs + config.provisionSeconds * 1000;
      return { atMs, state: 'failed', because: 'start_deadline' };
    }
    case 'active': {
      // What is open or runs inside is good for a whole lease after it was last seen.
      const isBusy = keptBy.some(({ by }) => by === 'shells' || by === 'commands');
      const atMs = isBusy ? nowMs + sandbox.idleTimeoutMs : leaseExpiresAtMs;
      return atMs < hardExpiresAtMs ? { atMs, state: 'suspended', because: 'idle_timeout' } : end;
    }
    case 'idle':
      return { atMs: nowMs, state: 'suspended', because: 'idle_timeout' };
    default:
      return end;
  }
}
