/** Brings word of ended tokens and new keys to the sandboxes: at once where it can, and again until each has it. */
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import type { SandboxId } from '../../../protocol/ids.js';
import type { Metrics } from '../../http/metrics.js';
import type { Provider } from '../../providers/provider.js';
import { SandboxAccess } from '../../store/sandbox-access.js';
import { providerNamed } from '../life/providers.js';
import { within } from '../life/within.js';
import { type AccessParts, readAccessFile } from './access-file.js';

export interface DeliveryParts extends AccessParts {
  readonly providers: readonly Provider[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: Metrics | undefined;
}

/** How often what is undelivered is looked for: with the provider's time, well within the two seconds that were promised. */
const SWEEP_MS = 500;
/** A provider that takes longer is asked again. */
const DELIVER_TIMEOUT_MS = 5_000;
/** How long whoever revoked something waits to be told that it is done; it is done anyway. */
const CALLER_WAIT_MS = 1_500;
const ROUNDS_MAX = 50;
const AT_ONCE = 8;
const PAGE = 100;
const BACKOFF_MAX_MS = 2_000;
const FAILURES_MAX = 10_000;

export class AccessDelivery {
  readonly #parts: DeliveryParts;
  /** One delivery of a sandbox at a time here; who asks meanwhile gets one that begins afterwards. */
  readonly #running = new Map<SandboxId, Promise<boolean>>();
  readonly #waiting = new Map<SandboxId, Promise<boolean>>();
  readonly #failures = new Map<SandboxId, { count: number; nextMs: number }>();
  readonly #closed = new AbortController();

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
  }

  /** After the commit. Whether the sandbox goes by it now; if not, it will as soon as its provider can be reached. */
  async deliverNow(sandboxId: SandboxId): Promise<boolean> {
    const timer = new AbortController();
    const late = this.#parts.clock
      .sleep(CALLER_WAIT_MS, timer.signal)
      .then(() => false)
      .catch(() => false);
    try {
      return await Promise.race([this.#deliver(sandboxId), late]);
    } finally {
      timer.abort();
    }
  }

  /** The same for what need not be waited for. */
  deliverSoon(sandboxId: SandboxId): void {
    void this.#deliver(sandboxId);
  }

  /** Until the signal aborts: finds what was committed and not delivered, whoever committed it. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#parts;
    while (!signal.aborted) {
      try {
        await this.sweep();
      } catch (error) {
        logger.warn('access delivery: the store could not be asked', { error });
      }
      try {
        await clock.sleep(SWEEP_MS, signal);
      } catch {
        return;
      }
    }
  }

  /** One round over everything that is undelivered and due. */
  async sweep(): Promise<void> {
    const { db, clock } = this.#parts;
    let after = '';
    for (;;) {
      const page = await new SandboxAccess(db).listUndelivered(PAGE, after);
      const due = page
        .map(({ sandboxId }) => sandboxId)
        .filter((id) => (this.#failures.get(id)?.nextMs ?? 0) <= clock.monotonic());
      const worker = async (): Promise<void> => {
        for (let id = due.shift(); id !== undefined; id = due.shift()) await this.#deliver(id);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last.sandboxId;
    }
  }

  /** Lets what is on its way arrive or fail; nothing new is begun. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new Error('the broker is closing'));
    await Promise.all([...this.#running.values(), ...this.#waiting.values()]);
  }

  #deliver(sandboxId: SandboxId): Promise<boolean> {
    const running = this.#running.get(sandboxId);
    if (running === undefined) return this.#begin(sandboxId);
    // What runs may have read the store before this change.
    const waiting =
      this.#waiting.get(sandboxId) ??
      running.then(() => {
        this.#waiting.delete(sandboxId);
        return this.#begin(sandboxId);
      });
    this.#waiting.set(sandboxId, waiting);
    return waiting;
  }

  #begin(sandboxId: SandboxId): Promise<boolean> {
    const work = this.#attempt(sandboxId).finally(() => this.#running.delete(sandboxId));
    this.#running.set(sandboxId, work);
    return work;
  }

  /** Never rejects: a failure is logged, and tried again later. */
  async #attempt(sandboxId: SandboxId): Promise<boolean> {
    const { logger, metrics } = this.#parts;
    try {
      const isDelivered = await this.#deliverLatest(sandboxId);
      this.#failures.delete(sandboxId);
      return isDelivered;
    } catch (error) {
      this.#failed(sandboxId);
      metrics?.deliveryEnded('failed');
      logger.warn('access not delivered yet', { sandbox_id: sandboxId, error });
      return false;
    }
  }

  /**
   * Replicas may deliver at once, and a late one may put an older word in the place of a newer: whoever finds after its
   * delivery that there is a newer one delivers that too.
   */
  async #deliverLatest(sandboxId: SandboxId): Promise<boolean> {
    const access = new SandboxAccess(this.#parts.db);
    for (let round = 0; round < ROUNDS_MAX; round++) {
      this.#closed.signal.throwIfAborted();
      const record = await access.find(sandboxId);
      // One that is being made gets it with its making, and one that has ended needs none.
      if (record === undefined || !record.isThere) return false;
      if (round === 0 && record.accessDelivered >= record.accessGeneration) return true;
      const generation = await this.#hand(sandboxId, record.provider);
      await access.markDelivered(sandboxId, generation);
      this.#parts.metrics?.deliveryEnded('done');
      const now = await access.find(sandboxId);
      if (now === undefined || now.accessGeneration <= generation) return true;
    }
    throw new Error('what counts changes faster than it can be delivered');
  }

  /** The generation that the sandbox was told. */
  async #hand(sandboxId: SandboxId, name: string): Promise<number> {
    const { clock, providers } = this.#parts;
    const file = await readAccessFile(this.#parts, sandboxId);
    const limit = { clock, ms: DELIVER_TIMEOUT_MS, parent: this.#closed.signal };
    await within(limit, 'the delivery', (signal) =>
      providerNamed(providers, name).deliver(sandboxId, file, signal),
    );
    return file.generation;
  }

  #failed(sandboxId: SandboxId): void {
    // Past this many, whoever was remembered is simply tried at every round.
    if (this.#failures.size >= FAILURES_MAX) this.#failures.clear();
    const count = (this.#failures.get(sandboxId)?.count ?? 0) + 1;
    const waitMs = count <= 4 ? 0 : Math.min(BACKOFF_MAX_MS, SWEEP_MS * 2 ** (count - 4));
    this.#failures.set(sandboxId, { count, nextMs: this.#parts.clock.monotonic() + waitMs });
  }
}
