/** What every part of the broker stands on. */
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import type { Secret } from '../../base/secret.js';
import type { RandomFill } from '../../protocol/ids.js';
import type { SandboxSpec } from '../../protocol/shapes/sandboxd.js';
import type { Provider } from '../providers/provider.js';
import type { Db } from '../store/db.js';

export interface BrokerParts {
  readonly db: Db;
  /** The first is the one that is taken when nobody says otherwise. */
  readonly providers: readonly Provider[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: RandomFill;
  readonly config: BrokerConfig;
  /** Where callers reach this server. */
  readonly url: string;
  /** `SANDBOX_AUTH_SECRET`, shared with others that make invites; absent: one of our own, shared by all replicas. */
  readonly sandboxAuthSecret?: Secret | undefined;
}

export interface BrokerConfig {
  readonly idleTimeoutSeconds: number;
  readonly hardTtlSeconds: number;
  readonly sweepSeconds: number;
  /** How long a sandbox may take to start. */
  readonly provisionSeconds: number;
  readonly limits: SandboxSpec['limits'];
}

/** One process of a server, while it runs; and the server, which is one store. */
export interface Replica {
  /** Who holds what is being worked on. */
  readonly holder: string;
  /** By which a provider's sandboxes are told from another server's. */
  readonly serverId: string;
  /** Aborts when the broker closes. */
  readonly signal: AbortSignal;
}

/** A replica that is not heard of for this long has lost what it was starting or stopping. */
export const HOLD_MS = 4_000;
export const HOLD_RENEWED_EVERY_MS = 1_000;
