/**
 * Starts sandboxes that were recorded: makes a new one, or wakes a suspended one, for as long as this replica holds it. A
 * start that this replica does not live to finish is taken over by another, and comes to the same sandbox.
 */

import { AilsdError } from '../../../protocol/errors.js';
import type { SandboxId, ThreadId } from '../../../protocol/ids.js';
import { parse } from '../../../protocol/parse.js';
import type { SandboxAccessFile } from '../../../protocol/shapes/sandboxd.js';
import { dataplane } from '../../../protocol/shapes/sessions.js';
import type { Endpoints, Provider } from '../../providers/provider.js';
import { Audit } from '../../store/audit.js';
import { ClientPolicies } from '../../store/client-policies.js';
import { rowTransaction } from '../../store/row-transaction.js';
import { SandboxLife } from '../../store/sandbox-life.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import { type BrokerParts, HOLD_MS, HOLD_RENEWED_EVERY_MS, type Replica } from '../parts.js';
import { destroySandbox, endSandbox, ownerOf } from './ends.js';
import { providerNamed } from './providers.js';
import { within } from './within.js';

export interface StarterParts extends BrokerParts {
  readonly replica: Replica;
  readonly readAccess: (id: SandboxId) => Promise<SandboxAccessFile>;
  /** Runs what nobody awaits until the broker closes. */
  readonly inBackground: (name: string, work: () => Promise<unknown>) => void;
}

/** `lost`: it was ended, or another replica goes on with it. */
export type StartOutcome = 'active' | 'failed' | 'lost';

export class Starter {
  readonly #parts: StarterParts;
  readonly #running = new Map<SandboxId, Promise<StartOutcome>>();

  constructor(parts: StarterParts) {
    this.#parts = parts;
  }

  /** This replica holds the sandbox, and has `leftMs` to start it. Goes on whether or not anybody waits; never rejects. */
  begin(sandbox: SandboxRecord, threadId: ThreadId, leftMs: number): Promise<StartOutcome> {
    const running = this.#running.get(sandbox.id);
    if (running !== undefined) return running;
    const work = this.#start(sandbox, threadId, leftMs).finally(() =>
      this.#running.delete(sandbox.id),
    );
    this.#running.set(sandbox.id, work);
    this.#parts.inBackground('start a sandbox', () => work);
    return work;
  }

  /** Of one that this very replica is starting. */
  running(id: SandboxId): Promise<StartOutcome> | undefined {
    return this.#running.get(id);
  }

  async #start(sandbox: SandboxRecord, threadId: ThreadId, leftMs: number): Promise<StartOutcome> {
    const { clock, logger, replica } = this.#parts;
    const hold = new AbortController();
    const renewing = this.#renew(sandbox.id, hold);
    try {
      const parent = AbortSignal.any([replica.signal, hold.signal]);
      const made = await within({ clock, ms: Math.max(leftMs, 1), parent }, 'the start', (signal) =>
        this.#make(sandbox, threadId, signal),
      );
      hold.abort();
      await renewing;
      return await this.#settle(sandbox, threadId, made);
    } catch (error) {
      hold.abort();
      await renewing;
      // Another replica goes on where this one was cut.
      if (replica.signal.aborted) return 'lost';
      logger.warn('a sandbox could not be started', { sandbox_id: sandbox.id, error });
      return await this.#fail(sandbox, error);
    }
  }

  async #make(
    sandbox: SandboxRecord,
    threadId: ThreadId,
    signal: AbortSignal,
  ): Promise<Endpoints & { readonly accessGeneration: number }> {
    const provider = providerNamed(this.#parts.providers, sandbox.provider);
    const access = await this.#parts.readAccess(sandbox.id);
    const making =
      sandbox.endpoints === undefined
        ? this.#create(provider, sandbox, threadId, access, signal)
        : wake(provider, sandbox.id, access, signal);
    // Whoever gave up waiting has ended it; what comes into being after that must go again.
    making.then(
      () => {
        if (signal.aborted && !this.#parts.replica.signal.aborted)
          this.#parts.inBackground('remove a late sandbox', () => this.#removeLate(sandbox));
      },
      () => undefined,
    );
    await making;
    const endpoints = await provider.endpoints(sandbox.id, signal);
    const view = await provider.inspect(sandbox.id, signal);
    if (view?.state !== 'running')
      throw new AilsdError('PROVIDER_UNAVAILABLE', 'the sandbox ended as soon as it was started');
    return { ...checkEndpoints(endpoints), accessGeneration: access.generation };
  }

  async #create(
    provider: Provider,
    sandbox: SandboxRecord,
    threadId: ThreadId,
    access: SandboxAccessFile,
    signal: AbortSignal,
  ): Promise<void> {
    const { db, config, replica } = this.#parts;
    const policy = await new ClientPolicies(db).find(sandbox.clientId);
    const spec = {
      id: sandbox.id,
      thread_id: threadId,
      environment: sandbox.environment,
      ...(sandbox.template !== undefined && { template: sandbox.template }),
      env: { ...policy?.environment },
      limits: config.limits,
      labels: { 'ailsd.server': replica.serverId, 'ailsd.tenant': sandbox.tenant },
    };
    await provider.create(spec, access, signal);
  }

  /** The sandbox is there; whether it is still wanted, the store says. */
  async #settle(
    sandbox: SandboxRecord,
    threadId: ThreadId,
    made: Endpoints & { readonly accessGeneration: number },
  ): Promise<StartOutcome> {
    const { db, replica } = this.#parts;
    const active = await rowTransaction(db, async (tx) => {
      const now = await new SandboxLife(tx).becomeActive(sandbox.id, replica.holder, made);
      if (now === undefined) return undefined;
      const details = { state: now.state, from: 'provisioning' };
      await new Audit(tx).record({ event: 'sandbox.state', ...ownerOf(now), threadId, details });
      return now;
    });
    if (active !== undefined) return 'active';
    await this.#removeLate(sandbox);
    return 'lost';
  }

  async #fail(sandbox: SandboxRecord, error: unknown): Promise<StartOutcome> {
    const { db, logger, replica } = this.#parts;
    const why = error instanceof AilsdError ? error.message : 'the provider failed';
    const end = { kind: 'failed', holder: replica.holder, why } as const;
    try {
      const ended = await rowTransaction(db, (tx) => endSandbox(tx, sandbox.id, end, 'failed'));
      if (ended === undefined) return 'lost';
      await destroySandbox(this.#parts, replica, ended);
      return 'failed';
    } catch (failure) {
      // The store is away: whoever finds the sandbox abandoned settles it.
      logger.warn('a failed start could not be recorded', {
        sandbox_id: sandbox.id,
        error: failure,
      });
      return 'lost';
    }
  }

  /** Unless another replica has taken it over, and goes on with the same. */
  async #removeLate(sandbox: SandboxRecord): Promise<void> {
    const { db, replica, logger } = this.#parts;
    try {
      const [row] = await db.query('SELECT ended_at FROM sandboxes WHERE id = ?', [sandbox.id]);
      if (row?.['ended_at'] === null) return;
      await destroySandbox(this.#parts, replica, sandbox);
    } catch (error) {
      logger.warn('a late sandbox is left to the reaper', { sandbox_id: sandbox.id, error });
    }
  }

  async #renew(id: SandboxId, hold: AbortController): Promise<void> {
    const { db, clock, logger, replica } = this.#parts;
    const life = new SandboxLife(db);
    let heldUntil = clock.monotonic() + HOLD_MS;
    while (!hold.signal.aborted) {
      try {
        await clock.sleep(HOLD_RENEWED_EVERY_MS, hold.signal);
        const asked = clock.monotonic();
        const held = await life.renewHold(id, { holder: replica.holder, leaseMs: HOLD_MS });
        if (held === undefined) return hold.abort(new Error('the sandbox is held no more'));
        heldUntil = asked + HOLD_MS;
      } catch (error) {
        if (hold.signal.aborted) return;
        logger.warn('a hold could not be renewed', { sandbox_id: id, error });
        if (clock.monotonic() >= heldUntil) return hold.abort(error);
      }
    }
  }
}

async function wake(
  provider: Provider,
  id: SandboxId,
  access: SandboxAccessFile,
  signal: AbortSignal,
): Promise<void> {
  // In this order: what was revoked while it slept must not count for a moment.
  await provider.deliver(id, access, signal);
  await provider.start(id, signal);
}

/** What a provider says is looked at before it is handed to clients. */
function checkEndpoints({ httpUrl, wsUrl }: Endpoints): Endpoints {
  const given = { http_base_url: httpUrl, ws_base_url: wsUrl };
  const parsed = parse(dataplane, given, 'PROVIDER_UNAVAILABLE', "the provider's answer: ");
  if (!parsed.ok) throw parsed.error;
  return { httpUrl, wsUrl };
}
