/** The steps of an ensure at which a replica may die, each by what is seen of it from outside: a statement or a provider's verb. */
import type { BrokerConfig } from '../../../../src/server/broker/parts.js';
import type { CrashPoint } from './crashing-db.js';

export interface CrashStep {
  readonly name: string;
  readonly point?: CrashPoint;
  readonly before?: string;
  readonly after?: string;
}

export const CRASH_STEPS: readonly CrashStep[] = [
  { name: 'idempotency row', point: { statement: 'INSERT INTO idempotency', at: 'within' } },
  { name: 'session row', point: { statement: 'INSERT INTO sessions', at: 'within' } },
  { name: 'session committed', point: { statement: 'INSERT INTO sessions', at: 'after' } },
  { name: 'create sent', before: 'create' },
  { name: 'create answered', after: 'create' },
  { name: 'key delivered', before: 'endpoints' },
  { name: 'before commit', point: { statement: "SET state = 'active'", at: 'within' } },
  { name: 'after commit', point: { statement: "SET state = 'active'", at: 'after' } },
  { name: 'before the answer', point: { statement: 'INSERT INTO issued_tokens', at: 'after' } },
];

/** Not of an ensure: the first sandbox that is put to sleep. */
export const CRASH_WHILE_REAPING: CrashStep = { name: 'reaping', before: 'stop' };

export interface ReplicaArguments {
  readonly storeUrl: string;
  readonly cloudFolder: string;
  readonly config?: Partial<BrokerConfig>;
  readonly jobs?: boolean;
  readonly crashAt?: string;
  /** How far its own clock is from everybody else's. */
  readonly clockOffsetMs?: number;
  /** Prints a line when a look over all sandboxes begins, and when it ends. */
  readonly tellsReaping?: boolean;
  readonly delayMs?: readonly [number, number];
}
