/**
 * Ends what has run out and what no session owns, one replica at a time. Each step is conditional in the store, so that a
 * reaper which stalled and was succeeded by another does no harm.
 */
import type { Metrics } from '../../http/metrics.js';
import type { Provider, ProviderView } from '../../providers/provider.js';
import { Idempotency } from '../../store/idempotency.js';
import { JobLeases } from '../../store/job-leases.js';
import { rowTransaction } from '../../store/row-transaction.js';
import { SandboxLife } from '../../store/sandbox-life.js';
import { Sandboxes, type SandboxRecord } from '../../store/sandboxes.js';
import { Sessions } from '../../store/sessions.js';
import { HOLD_MS } from '../parts.js';
import { destroySandbox, endSandbox } from './ends.js';
import type { Starter, StarterParts } from './start.js';
import { finishSuspend, suspendIfIdle } from './suspend.js';
import { within } from './within.js';

const JOB = 'reaper';
/** Sandboxes looked at in one go, and worked on at the same time. */
const BATCH = 200;
const AT_ONCE = 16;
const SWEPT_KEYS = 500;
const LIST_TIMEOUT_MS = 30_000;
/** What a provider holds under our name and the store has never heard of must be seen twice, this far apart. */
const UNKNOWN_GRACE_MS = 5_000;
const UNKNOWN_MAX = 10_000;

export class Reaper {
  readonly #parts: StarterParts;
  readonly #starter: Starter;
  readonly #metrics: Metrics | undefined;
  readonly #unknownSince = new Map<string, number>();

  constructor(parts: StarterParts, starter: Starter, metrics?: Metrics) {
    this.#parts = parts;
    this.#starter = starter;
    this.#metrics = metrics;
  }

  /**
   * Until the signal aborts. A reaper that dies is succeeded in time for its successor to find what has run out within two
   * sweeps: hence a lease of one, and a look twice in each.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { db, clock, config, logger, replica } = this.#parts;
    const everyMs = config.sweepSeconds * 1000;
    const jobs = new JobLeases(db);
    try {
      while (!signal.aborted) {
        try {
          if (await jobs.take(JOB, replica.holder, everyMs)) await this.#sweepAlone(jobs, everyMs);
        } catch (error) {
          if (!signal.aborted) logger.warn('a sweep was cut short', { error });
        }
        await clock.sleep(everyMs / 2, signal);
      }
    } finally {
      await jobs.letGo(JOB, replica.holder).catch(() => undefined);
    }
  }

  /** Keeps the job while the sweep lasts, and stops when another has it. */
  async #sweepAlone(jobs: JobLeases, everyMs: number): Promise<void> {
    const { clock, logger, replica } = this.#parts;
    const done = new AbortController();
    let isOurs = true;
    const keep = async (): Promise<void> => {
      while (isOurs) {
        await clock.sleep(everyMs / 3, done.signal);
        isOurs = await jobs.take(JOB, replica.holder, everyMs);
      }
    };
    const keeping = keep().catch((error: unknown) => {
      if (done.signal.aborted) return;
      isOurs = false;
      logger.warn('the job of sweeping could not be kept', { error });
    });
    const did: Did = { ended: 0, taken_over: 0, looked_at: 0, destroyed: 0, orphans: 0 };
    let outcome: 'done' | 'failed' = 'failed';
    try {
      await this.sweep(() => isOurs, did);
      outcome = 'done';
    } finally {
      this.#metrics?.sweepEnded(outcome, did);
      done.abort();
      await keeping;
    }
  }

  /** One round, for as long as `isOurs`. */
  async sweep(isOurs: () => boolean, did: Did): Promise<void> {
    const { db, replica } = this.#parts;
    const life = new SandboxLife(db);
    const rounds: readonly (readonly [
      what: keyof Did,
      find: Find,
      work: (found: SandboxRecord) => Promise<unknown>,
    ])[] = [
      ['ended', () => life.hardEndReached(BATCH), (sandbox) => this.#expire(sandbox)],
      ['taken_over', () => life.abandoned(BATCH), (sandbox) => this.#goOn(sandbox)],
      [
        'looked_at',
        () => life.leaseOver(BATCH),
        (sandbox) => suspendIfIdle(this.#parts, replica, sandbox),
      ],
      [
        'destroyed',
        (last) => life.toDestroy(BATCH, last?.endedAtMs ?? 0),
        (sandbox) => destroySandbox(this.#parts, replica, sandbox),
      ],
    ];
    for (const [what, find, work] of rounds) {
      let last: SandboxRecord | undefined;
      for (;;) {
        const found = await find(last);
        did[what] += await this.#each(found, work);
        last = found.at(-1);
        if (!isOurs()) return;
        // What failed is still there: a batch that got nowhere is left for the next sweep.
        if (found.length < BATCH) break;
      }
    }
    for (const provider of this.#parts.providers) {
      did.orphans += await this.#removeOrphans(provider);
      if (!isOurs()) return;
    }
    while ((await new Idempotency(db).sweepExpired(SWEPT_KEYS)) >= SWEPT_KEYS)
      if (!isOurs()) return;
  }

  /** With how many it went well. */
  async #each(
    found: readonly SandboxRecord[],
    work: (one: SandboxRecord) => Promise<unknown>,
  ): Promise<number> {
    const { logger, replica } = this.#parts;
    const left = [...found];
    let done = 0;
    const worker = async (): Promise<void> => {
      for (let one = left.shift(); one !== undefined; one = left.shift()) {
        replica.signal.throwIfAborted();
        try {
          await work(one);
          done += 1;
        } catch (error) {
          logger.warn('a sandbox is left for the next sweep', { sandbox_id: one.id, error });
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return done;
  }

  async #expire({ id }: SandboxRecord): Promise<void> {
    const { db, replica } = this.#parts;
    const end = { kind: 'hard-ttl' } as const;
    const ended = await rowTransaction(db, (tx) => endSandbox(tx, id, end, 'expired'));
    if (ended !== undefined) await destroySandbox(this.#parts, replica, ended);
  }

  /** What a replica began and did not finish. */
  async #goOn({ id }: SandboxRecord): Promise<void> {
    const { db, config, replica } = this.#parts;
    const hold = { holder: replica.holder, leaseMs: HOLD_MS };
    const taken = await new SandboxLife(db).takeOver(id, hold);
    if (taken === undefined) return;
    if (taken.state === 'idle') {
      await finishSuspend(this.#parts, replica, taken);
      return;
    }
    const held = await new Sessions(db).findBySandbox(id);
    const leftMs = taken.lastActiveAtMs + config.provisionSeconds * 1000 - (await db.now());
    if (held !== undefined && leftMs > 0) {
      await this.#starter.begin(taken, held.session.threadId, leftMs);
      return;
    }
    const end = {
      kind: 'failed',
      holder: replica.holder,
      why: 'nobody finished its start',
    } as const;
    const ended = await rowTransaction(db, (tx) => endSandbox(tx, id, end, 'failed'));
    if (ended !== undefined) await destroySandbox(this.#parts, replica, ended);
  }

  /**
   * Listed first and looked up then: what is made is recorded before, so whatever is listed and not in the store is
   * nobody's.
   */
  async #removeOrphans(provider: Provider): Promise<number> {
    const { db, clock, logger, replica } = this.#parts;
    const { signal: parent, serverId } = replica;
    const views = await within({ clock, ms: LIST_TIMEOUT_MS, parent }, 'to list them', (signal) =>
      provider.list(signal),
    );
    const own = views.filter(({ labels }) => labels['ailsd.server'] === serverId);
    const living = await new Sandboxes(db).living(own.map(({ id }) => id));
    const orphans = own.filter(({ id }) => !living.has(id));
    const known = await new Sandboxes(db).known(orphans.map(({ id }) => id));
    let removed = 0;
    for (const orphan of orphans) {
      if (!known.has(orphan.id) && !this.#isUnknownForLong(orphan, clock.monotonic())) continue;
      logger.info('a sandbox that nothing holds is destroyed', { sandbox_id: orphan.id });
      await destroySandbox(this.#parts, replica, { id: orphan.id, provider: provider.name });
      this.#unknownSince.delete(orphan.id);
      removed += 1;
    }
    return removed;
  }

  #isUnknownForLong({ id }: ProviderView, nowMs: number): boolean {
    const since = this.#unknownSince.get(id);
    if (since !== undefined) return nowMs - since >= UNKNOWN_GRACE_MS;
    if (this.#unknownSince.size >= UNKNOWN_MAX) this.#unknownSince.clear();
    this.#unknownSince.set(id, nowMs);
    return false;
  }
}

/** What a sweep did, in the words of the metrics; `looked_at` are those whose lease was over, asleep now or still in use. */
type Did = Record<'ended' | 'taken_over' | 'looked_at' | 'destroyed' | 'orphans', number>;

type Find = (last: SandboxRecord | undefined) => Promise<readonly SandboxRecord[]>;
