/**
 * The order of every call, of code as of an invite: it is recorded, then policy, then quota, then a session, then the work;
 * and whatever happened becomes exactly one row. What fails on the way is an outcome; only a store that is away throws.
 */
import { AilsdError } from '../../../protocol/errors.js';
import { type InvocationId, newId, type SessionId, type ThreadId } from '../../../protocol/ids.js';
import { AUDIT_RETENTION_DAYS } from '../../../protocol/shapes/code.js';
import { CodeCalls, type Via } from '../../store/code-calls.js';
import { Quotas } from '../../store/quotas.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { SessionRecord } from '../../store/sessions.js';
import type { BrokerParts, Replica } from '../parts.js';
import type { CallerPolicy } from '../policy/decide.js';
import type { Minted } from '../tokens/mint.js';
import { Gate } from './gate.js';
import { capExceeded, notRun, type Outcome, wordsOf } from './outcome.js';
import type { Turns } from './turns.js';

export interface CodeCall {
  readonly via: Via;
  readonly tenant: string;
  /** Who called, as the row names them. */
  readonly agentId: string;
  /** Whose hour it is counted in. */
  readonly countedAs: string;
  readonly owner: string;
  readonly clientId: string;
  readonly requestId: string;
  readonly threadId: ThreadId;
  readonly turnId?: string | undefined;
  readonly language?: string | undefined;
  readonly codeHash: string;
  /** Rejects where the caller may not: then there is no call at all. */
  readonly authorize?: (() => Promise<void>) | undefined;
  /** Rejects where the tenant may not. */
  readonly policy: () => Promise<CallerPolicy>;
  readonly open: (policy: CallerPolicy, signal: AbortSignal) => Promise<OpenedSession>;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
}

/** A session to work in, and a sandbox token for it. */
export interface OpenedSession {
  readonly session: SessionRecord;
  readonly sandbox: SandboxRecord & { readonly endpoints: NonNullable<SandboxRecord['endpoints']> };
  readonly minted: Minted;
}

export interface Work {
  readonly invocationId: InvocationId;
  readonly opened: OpenedSession;
  readonly retentionDays: number;
  /** Aborts when the caller has gone, or this replica ends. */
  readonly signal: AbortSignal;
}

export interface Called {
  readonly invocationId: InvocationId;
  readonly sessionId: SessionId | undefined;
  readonly outcome: Outcome;
}

export interface CallsParts {
  readonly broker: BrokerParts;
  readonly replica: Replica;
  readonly turns: Turns;
}

/** A replica that was not heard of for this long has lost its calls; see `recovery.ts`. */
export const CALL_HOLD_MS = 15_000;
/** How long the answer waits for a store that does not take the row. */
const RECORD_MS = 10_000;
const RECORD_AGAIN_MS = 200;
/** A session that ended between being found and being joined is looked for again. */
const MOST_JOINS = 8;
/** Calls of a replica that are on their way to a session, or from their work to their row, at the same time. */
const MOST_AT_STORE = 16;

export class Calls {
  readonly #parts: CallsParts;
  readonly #store = new Gate(MOST_AT_STORE);

  constructor(parts: CallsParts) {
    this.#parts = parts;
  }

  /** `work` does what the caller wants; the outcome it gives, or its failure, is what is recorded. */
  async perform(call: CodeCall, work: (given: Work) => Promise<Outcome>): Promise<Called> {
    const { broker, replica, turns } = this.#parts;
    const { db, clock, random } = broker;
    const invocationId = newId('invocation', random);
    const { turnId, language } = call;
    const recorded = { ...call, id: invocationId, turnId, language };
    await this.#store.run(async () => {
      await call.authorize?.();
      await new CodeCalls(db).begin(recorded, replica.holder, CALL_HOLD_MS);
    });
    const begin = clock.monotonic();
    const progress: Progress = { opened: undefined, retentionDays: AUDIT_RETENTION_DAYS.default };
    let outcome: Outcome;
    try {
      outcome = await this.#attempt(call, invocationId, progress, work);
    } catch (thrown) {
      outcome = { ...this.#failed(call, thrown), durationMs: clock.monotonic() - begin };
    }
    const sessionId = progress.opened?.session.id;
    await this.#store.run(async () => {
      await this.#record(invocationId, outcome, progress.retentionDays);
      if (sessionId !== undefined) await turns.callEnded(sessionId, call.turnId);
    });
    return { invocationId, sessionId, outcome };
  }

  async #attempt(
    call: CodeCall,
    invocationId: InvocationId,
    progress: Progress,
    work: (given: Work) => Promise<Outcome>,
  ): Promise<Outcome> {
    const { broker, replica } = this.#parts;
    const signal = AbortSignal.any([call.signal, replica.signal]);
    const entered = await this.#store.run(async () => {
      const policy = await call.policy();
      progress.retentionDays = policy.tenant.auditRetentionDays;
      const quota = await new Quotas(broker.db).take(call.tenant, call.countedAs);
      if (quota.kind === 'breach') return capExceeded(quota.dimension, quota.resetsAtMs);
      return policy;
    });
    if ('exitStatus' in entered) return entered;
    const opened = await this.#open(call, invocationId, entered, signal);
    progress.opened = opened;
    checkEnvironment(broker, entered, opened.sandbox);
    const { retentionDays } = progress;
    return work({ invocationId, opened, retentionDays, signal });
  }

  async #open(
    call: CodeCall,
    invocationId: InvocationId,
    policy: CallerPolicy,
    signal: AbortSignal,
  ): Promise<OpenedSession> {
    const calls = new CodeCalls(this.#parts.broker.db);
    for (let joins = 0; joins < MOST_JOINS; joins++) {
      const opened = await call.open(policy, signal);
      const { session, sandbox, minted } = opened;
      const place = { sessionId: session.id, sandboxId: sandbox.id, jti: minted.jti };
      if ((await calls.join(invocationId, place)) === 'joined') return opened;
    }
    throw new AilsdError('PROVIDER_UNAVAILABLE', 'the session ended again and again');
  }

  /** Whatever fails before the work has begun, or keeps it from beginning, is a sandbox that is not ready. */
  #failed(call: CodeCall, thrown: unknown): Outcome {
    const { broker, replica } = this.#parts;
    if (call.signal.aborted) return notRun('error', 'the caller went away');
    if (replica.signal.aborted) return notRun('error', 'the server was ending');
    if (!(thrown instanceof AilsdError) || thrown.code === 'INTERNAL')
      broker.logger.error('a call failed', { request_id: call.requestId, error: thrown });
    return notRun('provisioning', wordsOf(thrown));
  }

  /** What can't be written in time is written by whoever finds the call abandoned. */
  async #record(id: InvocationId, outcome: Outcome, retentionDays: number): Promise<void> {
    const { clock, logger, db } = this.#parts.broker;
    const { signal } = this.#parts.replica;
    const end = {
      exitStatus: outcome.exitStatus,
      exitCode: outcome.exitCode,
      failureReason: outcome.message,
      durationMs: outcome.durationMs,
      stdoutBytes: outcome.stdout.bytes,
      stderrBytes: outcome.stderr.bytes,
      isStdoutTruncated: outcome.stdout.isTruncated,
      isStderrTruncated: outcome.stderr.isTruncated,
      retentionDays,
    };
    const deadline = clock.monotonic() + RECORD_MS;
    for (;;) {
      try {
        const isOurs = await new CodeCalls(db).finish(id, end);
        if (!isOurs) logger.warn('a call was recorded by another replica', { invocation_id: id });
        return;
      } catch (error) {
        logger.warn('a call could not be recorded yet', { invocation_id: id, error });
        if (clock.monotonic() > deadline || signal.aborted) throw error;
        await clock.sleep(RECORD_AGAIN_MS, signal);
      }
    }
  }
}

interface Progress {
  opened: OpenedSession | undefined;
  retentionDays: number;
}

/** A sandbox that was made under another policy, or by a provider that can't hold it to this one, runs nothing. */
function checkEnvironment(
  { providers }: BrokerParts,
  { tenant }: CallerPolicy,
  { environment, provider }: SandboxRecord,
): void {
  if (tenant.environment !== 'internal-only') return;
  const { egressControl = false } = providers.find(({ name }) => name === provider)?.flags ?? {};
  if (environment === 'internal-only' && egressControl) return;
  throw new AilsdError('PROVIDER_UNAVAILABLE', 'this sandbox is not kept off the network', {
    hint: 'release the session: the next one is made by the policy of now',
  });
}
