/** Waits for a sandbox that another replica is starting: one look at the store a moment, however many wait here. */
import type { SandboxId } from '../../../protocol/ids.js';
import { Sandboxes } from '../../store/sandboxes.js';
import type { BrokerParts, Replica } from '../parts.js';
import type { Starter } from './start.js';

const LOOK_EVERY_MS = 100;

export class StartWatch {
  readonly #parts: BrokerParts;
  readonly #replica: Replica;
  readonly #starter: Starter;
  readonly #watching = new Map<SandboxId, Promise<void>>();

  constructor(parts: BrokerParts, replica: Replica, starter: Starter) {
    this.#parts = parts;
    this.#replica = replica;
    this.#starter = starter;
  }

  /** Settles when there may be something new to find in the store. Never rejects. */
  settled(id: SandboxId): Promise<unknown> {
    const own = this.#starter.running(id);
    if (own !== undefined) return own;
    const watching =
      this.#watching.get(id) ?? this.#watch(id).finally(() => this.#watching.delete(id));
    this.#watching.set(id, watching);
    return watching;
  }

  async #watch(id: SandboxId): Promise<void> {
    const { db, clock, logger } = this.#parts;
    const sandboxes = new Sandboxes(db);
    try {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, this.#replica.signal);
        const sandbox = await sandboxes.find(id);
        const { state, workUntilMs = 0 } = sandbox ?? {};
        if (state !== 'provisioning' && state !== 'idle') return;
        if (workUntilMs <= (await db.now())) return;
      }
    } catch (error) {
      if (!this.#replica.signal.aborted) logger.warn('a start could not be watched', { error });
    }
  }
}
