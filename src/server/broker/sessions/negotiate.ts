/**
 * A thread's sandbox, for whoever asks. That there is one session and one sandbox however many ask is decided by the
 * database in one transaction; what takes long, the start, is done outside and its outcome found in the store again.
 */
import { onAbort } from '../../../base/abort.js';
import { AilsdError } from '../../../protocol/errors.js';
import { newId, type SessionId } from '../../../protocol/ids.js';
import { clampTtl, SANDBOX_TOKEN_SECONDS } from '../../../protocol/lifetimes.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { Idempotency } from '../../store/idempotency.js';
import { rowTransaction } from '../../store/row-transaction.js';
import { SandboxLife } from '../../store/sandbox-life.js';
import { Sandboxes, type SandboxRecord } from '../../store/sandboxes.js';
import { type HeldSandbox, Sessions } from '../../store/sessions.js';
import { endSandbox, ownerOf } from '../life/ends.js';
import { chooseProvider } from '../life/providers.js';
import type { Starter } from '../life/start.js';
import type { StartWatch } from '../life/watch.js';
import { type BrokerParts, HOLD_MS, type Replica } from '../parts.js';
import { type CallerPolicy, decideCapabilities, requirePolicy } from '../policy/decide.js';
import type { MintToken } from '../tokens/mint.js';
import { ttlAdjustment } from '../tokens/refresh.js';
import { auditOf } from './caller.js';
import { type Access, accessTo, isWithinPins, noSession, recordBypass } from './find.js';
import type { Negotiated, Negotiation } from './negotiation.js';

export interface NegotiatorParts {
  readonly broker: BrokerParts;
  readonly replica: Replica;
  readonly starter: Starter;
  readonly watch: StartWatch;
  readonly mint: MintToken;
}

type Step =
  | ({ readonly kind: 'granted' } & Negotiated)
  /** This replica holds it and has to start it. */
  | { readonly kind: 'held'; readonly held: HeldSandbox; readonly leftMs: number }
  /** Somebody else does. */
  | { readonly kind: 'starting'; readonly held: HeldSandbox };

const RETRY_AFTER_MS = 1_000;

/** A lease that has run down by less than this part of it is not written anew. */
const LEASE_SLACK = 1 / 10;

export class Negotiator {
  readonly #parts: NegotiatorParts;

  constructor(parts: NegotiatorParts) {
    this.#parts = parts;
  }

  async negotiate(asked: Negotiation): Promise<Negotiated> {
    const { db, clock } = this.#parts.broker;
    const policy = await requirePolicy(db, {
      principal: asked.caller.principal,
      threadId: asked.scope.id,
      requestId: asked.caller.requestId,
    });
    const deadline = clock.monotonic() + asked.waitMs;
    let awaited: SessionId | undefined;
    for (;;) {
      asked.signal.throwIfAborted();
      const step = await this.#next(asked, policy, awaited);
      if (step.kind === 'granted') {
        const kept = await this.#lengthen(asked, step);
        if (kept !== undefined) return kept;
        continue;
      }
      const { session, sandbox } = step.held;
      awaited = session.id;
      if (step.kind === 'held') {
        const started = this.#parts.starter.begin(sandbox, session.threadId, step.leftMs);
        const outcome = await orGone(started, asked.signal);
        if (outcome === 'failed') throw startFailed();
        continue;
      }
      const leftMs = deadline - clock.monotonic();
      if (leftMs <= 0) throw starting();
      await this.#wait(step.held, leftMs, asked.signal);
    }
  }

  /** Looks, decides in a transaction, and only where there is nothing makes something, in another. */
  async #next(
    asked: Negotiation,
    policy: CallerPolicy,
    awaited: SessionId | undefined,
  ): Promise<Step> {
    const { db } = this.#parts.broker;
    for (let tries = 1; ; tries++) {
      const peeked = awaited && (await this.#peek(asked));
      if (peeked !== undefined) return peeked;
      try {
        const step = await db.transaction((tx) => this.#step(tx, asked, policy, awaited));
        if (step !== 'none') return step;
        return await rowTransaction(db, (tx) => this.#create(tx, asked, policy));
      } catch (error) {
        // Somebody else was faster: what they made is found in the next round.
        if (error !== TAKEN || tries >= MOST_TRIES) throw error === TAKEN ? tooMany() : error;
      }
    }
  }

  /** Saves those who wait and look again a transaction: what is being started by somebody who is alive stays so for now. */
  async #peek(asked: Negotiation): Promise<Step | undefined> {
    if (asked.key !== undefined || asked.mode === 'create_only') return undefined;
    const held = await new Sessions(this.#parts.broker.db).findOpen(scopeOf(asked));
    if (held === undefined || !isBeingWorkedOn(held)) return undefined;
    if (held.session.owner !== asked.caller.principal.sub) return undefined;
    if (!isWithinPins(asked.caller.principal, asked.scope.id)) return undefined;
    if (asked.mode === 'get' && held.sandbox.state === 'idle') return undefined;
    return { kind: 'starting', held };
  }

  async #step(
    tx: Db,
    asked: Negotiation,
    policy: CallerPolicy,
    awaited: SessionId | undefined,
  ): Promise<Step | 'none'> {
    const { principal } = asked.caller;
    const known = await this.#findByKey(tx, asked);
    const open = known ?? (await new Sessions(tx).findOpen(scopeOf(asked)));
    const held = open && (await this.#unlessExpired(tx, open));
    if (held === undefined) {
      if (awaited !== undefined) await refuseFailed(tx, awaited);
      return 'none';
    }
    const access = await accessTo(tx, held.session, principal);
    const isKnown = known !== undefined || held.session.id === awaited;
    await checkMode(tx, asked, held, access, isKnown);
    if (access === undefined) throw noSession();
    const decision = decideCapabilities(policy, {
      principal,
      actor: asked.actor,
      requested: asked.requested,
      vocabulary: asked.vocabulary,
      field: asked.capabilitiesField,
      grant: access.kind === 'grant' ? access.grant.capabilities : undefined,
    });
    if (known === undefined) await recordKey(tx, asked, held.session.id);
    const pending = await this.#wake(tx, asked, held);
    if (pending !== undefined) return pending;
    const { endpoints } = held.sandbox;
    if (endpoints === undefined) throw new AilsdError('INTERNAL', 'a sandbox without a place');
    if (access.kind === 'admin') await recordBypass(tx, asked.caller, held.session);
    const minted = await this.#parts.mint(tx, {
      session: held.session,
      sandbox: held.sandbox,
      principal,
      capabilities: decision.capabilities,
      ttlSeconds: clampTtl(asked.ttl ?? SANDBOX_TOKEN_SECONDS.max),
      tokenMode: policy.tenant.tokenMode,
      requestId: asked.caller.requestId,
      ...(access.kind === 'grant' && {
        grantId: access.grant.id,
        notAfterMs: access.grant.expiresAtMs,
      }),
    });
    return {
      kind: 'granted',
      session: held.session,
      sandbox: { ...held.sandbox, endpoints },
      minted,
      words: decision.words,
      adjustments: [...ttlAdjustment(asked.ttl, minted), ...decision.adjustments],
    };
  }

  /** What this very request came to before. One that failed then is begun afresh. */
  async #findByKey(tx: Db, { key }: Negotiation): Promise<HeldSandbox | undefined> {
    if (key === undefined) return undefined;
    const known = await new Idempotency(tx).find(key);
    if (known.kind === 'new') return undefined;
    if (known.kind === 'other-request') {
      throw new AilsdError('SESSION_CONFLICT', 'this Idempotency-Key came with another request', {
        details: { field: 'Idempotency-Key' },
        hint: 'use a new key for a new request',
      });
    }
    const held = await new Sessions(tx).find(known.sessionId);
    if (held?.session.endReason === 'failed') return undefined;
    if (held === undefined || held.session.endedAtMs !== undefined) {
      throw new AilsdError('SESSION_NOT_FOUND', 'what this Idempotency-Key led to has ended', {
        hint: 'use a new key for a new session',
      });
    }
    return held;
  }

  /** The reaper may be late; what is over is over. */
  async #unlessExpired(tx: Db, held: HeldSandbox): Promise<HeldSandbox | undefined> {
    if (held.nowMs < held.sandbox.hardExpiresAtMs) return held;
    const ended = await endSandbox(tx, held.sandbox.id, { kind: 'hard-ttl' }, 'expired');
    return ended === undefined ? held : undefined;
  }

  async #create(tx: Db, asked: Negotiation, policy: CallerPolicy): Promise<Step> {
    const { broker, replica } = this.#parts;
    const { caller, scope } = asked;
    const { principal } = caller;
    if (asked.mode === 'get' || asked.mode === 'attach_only') throw noSession();
    if (!isWithinPins(principal, scope.id)) throw notYours();
    if (!principal.scopes.includes('write:sandbox')) {
      throw new AilsdError(
        'FORBIDDEN',
        'there is no session, and to make one takes write:sandbox',
        {
          details: { scope: 'write:sandbox' },
          hint: 'log in again with the missing scope',
        },
      );
    }
    await checkHint(tx, asked, undefined);
    decideCapabilities(policy, {
      principal,
      actor: asked.actor,
      requested: asked.requested,
      vocabulary: asked.vocabulary,
    });
    const { environment } = policy.tenant;
    const provider = chooseProvider(broker.providers, asked.providerPreference, environment);
    const sandboxId = newId('sandbox', broker.random);
    const session = {
      id: newId('session', broker.random),
      tenant: principal.tenant,
      threadId: scope.id,
      scopeType: scope.type,
      owner: principal.sub,
      sandboxId,
    };
    await new Sandboxes(tx).add({
      id: sandboxId,
      tenant: principal.tenant,
      owner: principal.sub,
      clientId: principal.clientId,
      provider: provider.name,
      template: asked.template,
      environment,
      idleTimeoutMs: broker.config.idleTimeoutSeconds * 1000,
      hardTtlMs: broker.config.hardTtlSeconds * 1000,
      workHolder: replica.holder,
      workLeaseMs: HOLD_MS,
    });
    if ((await new Sessions(tx).add(session)) === 'taken') throw TAKEN;
    await asked.onCreated?.(tx, session);
    await recordKey(tx, asked, session.id);
    const details = { provider: provider.name, scope_type: scope.type };
    await new Audit(tx).record({ event: 'session.created', ...auditOf(caller, session), details });
    const held = await new Sessions(tx).find(session.id);
    if (held === undefined)
      throw new AilsdError('INTERNAL', 'a session that was added is not there');
    return { kind: 'held', held, leftMs: broker.config.provisionSeconds * 1000 };
  }

  /** Undefined: it can be used as it is. */
  async #wake(tx: Db, asked: Negotiation, held: HeldSandbox): Promise<Step | undefined> {
    const { broker, replica } = this.#parts;
    const { sandbox } = held;
    if (sandbox.state === 'active') return undefined;
    // Who only looks wakes nothing.
    if (asked.mode === 'get' && sandbox.endpoints !== undefined && sandbox.state !== 'provisioning')
      return undefined;
    const hold = { holder: replica.holder, leaseMs: HOLD_MS };
    const provisionMs = broker.config.provisionSeconds * 1000;
    if (sandbox.state === 'suspended') {
      const taken = await new SandboxLife(tx).beginResume(sandbox.id, hold);
      if (taken === undefined) return { kind: 'starting', held };
      await this.#recordState(tx, asked, held, taken);
      return { kind: 'held', held: { ...held, sandbox: taken }, leftMs: provisionMs };
    }
    if (sandbox.state !== 'provisioning' || isBeingWorkedOn(held))
      return { kind: 'starting', held };
    const taken = await new SandboxLife(tx).takeOver(sandbox.id, hold);
    if (taken === undefined) return { kind: 'starting', held };
    const leftMs = sandbox.lastActiveAtMs + provisionMs - held.nowMs;
    return { kind: 'held', held: { ...held, sandbox: taken }, leftMs };
  }

  async #recordState(
    tx: Db,
    { caller }: Negotiation,
    { session, sandbox }: HeldSandbox,
    now: SandboxRecord,
  ): Promise<void> {
    const details = { state: now.state, from: sandbox.state };
    const who = { ...ownerOf(now), ...auditOf(caller, session) };
    await new Audit(tx).record({ event: 'sandbox.state', ...who, details });
  }

  /** Undefined: it fell asleep in between. Never makes a lease shorter. */
  async #lengthen(asked: Negotiation, granted: Negotiated): Promise<Negotiated | undefined> {
    const { sandbox, minted } = granted;
    if (asked.mode === 'get') return granted;
    const wholeMs = minted.issuedAtMs + sandbox.idleTimeoutMs * (1 - LEASE_SLACK);
    if (sandbox.leaseExpiresAtMs >= Math.min(wholeMs, sandbox.hardExpiresAtMs)) return granted;
    const kept = await new SandboxLife(this.#parts.broker.db).lengthenLease(sandbox.id);
    return kept && { ...granted, sandbox: { ...kept, endpoints: sandbox.endpoints } };
  }

  async #wait({ sandbox }: HeldSandbox, leftMs: number, signal: AbortSignal): Promise<void> {
    const timer = new AbortController();
    const { clock } = this.#parts.broker;
    const late = clock.sleep(leftMs, timer.signal).catch(() => undefined);
    try {
      await orGone(Promise.race([this.#parts.watch.settled(sandbox.id), late]), signal);
    } finally {
      timer.abort();
    }
  }
}

const TAKEN = new Error('somebody else was faster');
const MOST_TRIES = 10;

function tooMany(): AilsdError {
  return new AilsdError('BACKEND_UNAVAILABLE', 'too many changed the same at once');
}

/** What failed under the key before may be forgotten; what somebody else did under it meanwhile may not. */
async function recordKey(tx: Db, { key }: Negotiation, sessionId: SessionId): Promise<void> {
  if (key === undefined) return;
  const keys = new Idempotency(tx);
  const known = await keys.find(key);
  const before = known.kind === 'known' ? known.sessionId : undefined;
  const led = before && (await new Sessions(tx).find(before));
  if (led !== undefined && led.session.endReason !== 'failed') throw TAKEN;
  if (!(await keys.record(key, sessionId, before))) throw TAKEN;
}

function scopeOf({ caller, scope }: Negotiation) {
  return { tenant: caller.principal.tenant, type: scope.type, id: scope.id };
}

function isBeingWorkedOn({ sandbox, nowMs }: HeldSandbox): boolean {
  const isUnderWay = sandbox.state === 'provisioning' || sandbox.state === 'idle';
  return isUnderWay && (sandbox.workUntilMs ?? 0) > nowMs;
}

/** Whether the mode may have what is there, as far as that can be told without saying whose it is. */
async function checkMode(
  tx: Db,
  asked: Negotiation,
  held: HeldSandbox,
  access: Access | undefined,
  isKnown: boolean,
): Promise<void> {
  if (access === undefined && (asked.mode === 'ensure' || asked.mode === 'create_only'))
    throw notYours();
  if (access === undefined) throw noSession();
  if (asked.mode === 'create_only' && !isKnown) {
    throw new AilsdError('SESSION_CONFLICT', 'the thread has a session');
  }
  await checkHint(tx, asked, held.sandbox.id);
}

/** A sandbox of the caller's own that another thread holds is not taken from it; any other hint is only a hint. */
async function checkHint(
  tx: Db,
  { hint, hintField, caller }: Negotiation,
  bound: string | undefined,
): Promise<void> {
  if (hint === undefined || hint === bound) return;
  const elsewhere = await new Sessions(tx).findBySandbox(hint);
  if (elsewhere === undefined) return;
  if ((await accessTo(tx, elsewhere.session, caller.principal)) === undefined) return;
  throw new AilsdError('SESSION_CONFLICT', 'that sandbox is bound to another thread', {
    details: { field: hintField },
    hint: 'leave the hint out, or ask for the thread that holds it',
  });
}

/** Those who waited for a start that failed are told so, and do not all try it again at once. */
async function refuseFailed(tx: Db, awaited: SessionId): Promise<void> {
  const held = await new Sessions(tx).find(awaited);
  if (held?.session.endReason === 'failed') throw startFailed();
}

async function orGone<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave: (() => void) | undefined;
  const gone = new Promise<never>((_, reject) => {
    leave = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([work, gone]);
  } finally {
    leave?.();
  }
}

function starting(): AilsdError {
  return new AilsdError('SANDBOX_STARTING', 'the sandbox is starting', {
    details: { retry_after_ms: RETRY_AFTER_MS },
  });
}

function startFailed(): AilsdError {
  return new AilsdError('PROVIDER_UNAVAILABLE', 'the sandbox could not be started', {
    details: { retry_after_ms: RETRY_AFTER_MS },
  });
}

function notYours(): AilsdError {
  return new AilsdError('FORBIDDEN', 'the thread is not yours');
}
