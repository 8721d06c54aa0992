/** Starts a sandbox that sleeps, because its owner says so: by the same steps as the next `ensure` would. */
import { AilsdError } from '../../../protocol/errors.js';
import { Audit } from '../../store/audit.js';
import { SandboxLife } from '../../store/sandbox-life.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import { type HeldSandbox, Sessions } from '../../store/sessions.js';
import type { Starter } from '../life/start.js';
import type { StartWatch } from '../life/watch.js';
import { type BrokerParts, HOLD_MS, type Replica } from '../parts.js';
import { auditOf, type Caller } from '../sessions/caller.js';
import { noSandbox } from './find.js';

export interface WakeParts {
  readonly broker: BrokerParts;
  readonly replica: Replica;
  readonly starter: Starter;
  readonly watch: StartWatch;
}

/** Returns when it is active. SANDBOX_STARTING when that takes longer than anybody wants to wait. */
export async function wake(
  parts: WakeParts,
  { session, sandbox }: HeldSandbox,
  caller: Caller,
  signal: AbortSignal,
): Promise<SandboxRecord> {
  const { db, clock, config } = parts.broker;
  const deadline = clock.monotonic() + WAIT_MS;
  let now = sandbox;
  while (now.state !== 'active') {
    signal.throwIfAborted();
    if (clock.monotonic() >= deadline) throw stillStarting();
    const held = await beginResume(parts, { session, sandbox: now }, caller);
    const work =
      held === undefined
        ? parts.watch.settled(now.id)
        : parts.starter.begin(held, session.threadId, config.provisionSeconds * 1_000);
    const outcome = await Promise.race([work, clock.sleep(LOOK_AGAIN_MS, signal)]);
    if (outcome === 'failed')
      throw new AilsdError('PROVIDER_UNAVAILABLE', 'the sandbox could not be started');
    const found = await new Sessions(db).findBySandbox(now.id);
    if (found === undefined) throw noSandbox();
    now = found.sandbox;
  }
  return now;
}

const WAIT_MS = 60_000;
const LOOK_AGAIN_MS = 5_000;

/** Undefined: it does not sleep, or another replica wakes it. */
function beginResume(
  { broker, replica }: WakeParts,
  { session, sandbox }: Pick<HeldSandbox, 'session' | 'sandbox'>,
  caller: Caller,
): Promise<SandboxRecord | undefined> {
  const hold = { holder: replica.holder, leaseMs: HOLD_MS };
  return broker.db.transaction(async (tx) => {
    const held = await new SandboxLife(tx).beginResume(sandbox.id, hold);
    if (held === undefined) return undefined;
    const details = { state: held.state, from: 'suspended' };
    await new Audit(tx).record({ event: 'sandbox.state', ...auditOf(caller, session), details });
    return held;
  });
}

export function stillStarting(): AilsdError {
  return new AilsdError('SANDBOX_STARTING', 'the sandbox is starting', {
    details: { retry_after_ms: 1_000 },
  });
}
