/**
 * The session of a turn: a thread's own where it has one, which stays; else one that the turn makes for itself, that its
 * calls share, and that ends with it. A turn ends with its only call, when another begins, or when no call came for long.
 */
import type { SessionId, ThreadId } from '../../../protocol/ids.js';
import { Audit } from '../../store/audit.js';
import { type CodeTurn, CodeTurns } from '../../store/code-turns.js';
import { takeTurnsAtRows } from '../../store/row-turns.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import { Sessions } from '../../store/sessions.js';
import { destroySandbox, endSandbox, ownerOf } from '../life/ends.js';
import type { BrokerParts, Replica } from '../parts.js';
import type { Caller } from '../sessions/caller.js';
import type { Negotiator } from '../sessions/negotiate.js';
import type { OpenedSession } from './calls.js';

export interface TurnsParts {
  readonly broker: BrokerParts;
  readonly replica: Replica;
  readonly negotiator: Negotiator;
  readonly inBackground: (name: string, work: () => Promise<unknown>) => void;
  readonly settings?: TurnSettings | undefined;
}

export interface TurnSettings {
  /** A turn without a call for this long is over. */
  readonly idleSeconds?: number | undefined;
}

export interface TurnQuestion {
  readonly caller: Caller;
  readonly threadId: ThreadId;
  readonly turnId: string | undefined;
  readonly tokenSeconds: number;
  readonly signal: AbortSignal;
}

const IDLE_SECONDS = 300;
/** A turn of one call is ended by that call; only where its replica died is it found here. */
const SINGLE_IDLE_MS = 10_000;
const START_WAIT_MS = 60_000;
const BATCH = 100;
/** Rows of ended turns are looked at by calls that were about to join. */
const ENDED_AGE_MS = 600_000;

export class Turns {
  readonly #parts: TurnsParts;

  constructor(parts: TurnsParts) {
    this.#parts = parts;
  }

  async open(asked: TurnQuestion): Promise<OpenedSession> {
    const { negotiator, broker } = this.#parts;
    const { caller, threadId, turnId, signal } = asked;
    await this.#endTurnBefore(asked);
    const negotiated = await negotiator.negotiate({
      caller,
      scope: { type: 'thread', id: threadId },
      mode: 'ensure',
      requested: ['process'],
      vocabulary: 'canonical',
      capabilitiesField: 'requested_capabilities',
      hintField: 'sandbox_hint',
      ttl: asked.tokenSeconds,
      waitMs: START_WAIT_MS,
      signal,
      onCreated: (tx, { id, sandboxId }) =>
        new CodeTurns(tx).add({ sessionId: id, sandboxId, turnId }),
    });
    broker.logger.debug('a call has a session', { session_id: negotiated.session.id });
    return negotiated;
  }

  /** Where a session is a turn's and nothing of the turn goes on: it is over when it has no name, or another one begins. */
  async callEnded(sessionId: SessionId, turnId: string | undefined): Promise<void> {
    if (turnId !== undefined) return;
    const { logger } = this.#parts.broker;
    try {
      const turn = await new CodeTurns(this.#parts.broker.db).find(sessionId);
      if (turn?.turnId === undefined && turn?.openCalls === 0) await this.#end(turn);
    } catch (error) {
      // The row of the call stands; the session is found again by whoever looks for idle turns.
      logger.warn('a turn could not be ended yet', { session_id: sessionId, error });
    }
  }

  async #endTurnBefore({ caller, threadId, turnId }: TurnQuestion): Promise<void> {
    const { db } = this.#parts.broker;
    const { tenant } = caller.principal;
    const held = await new Sessions(db).findOpen({ tenant, type: 'thread', id: threadId });
    const turn = held && (await new CodeTurns(db).find(held.session.id));
    if (turn === undefined || turn.turnId === turnId) return;
    await this.#end(turn);
  }

  /** One round of looking for turns that nobody ended. */
  async sweep(): Promise<void> {
    const turns = new CodeTurns(this.#parts.broker.db);
    const idleMs = (this.#parts.settings?.idleSeconds ?? IDLE_SECONDS) * 1_000;
    for (const turn of await turns.idle(idleMs, Math.min(SINGLE_IDLE_MS, idleMs), BATCH))
      await this.#end(turn);
    await turns.sweep(ENDED_AGE_MS);
  }

  /** Unless a call is in it. A session that others were let into meanwhile is theirs, and goes on. */
  async #end({ sessionId, sandboxId }: CodeTurn): Promise<void> {
    const { broker, replica } = this.#parts;
    const ended = await broker.db.transaction(async (tx): Promise<SandboxRecord | undefined> => {
      await takeTurnsAtRows(tx);
      const turns = new CodeTurns(tx);
      const shared = await turns.isShared(sessionId);
      if (shared === 'perhaps' || !(await turns.end(sessionId)) || shared === 'yes')
        return undefined;
      const held = await new Sessions(tx).find(sessionId);
      if (held === undefined || held.session.endedAtMs !== undefined) return undefined;
      await new Sessions(tx).end(sessionId, 'released');
      const { session, sandbox } = held;
      const place = { ...ownerOf(sandbox), sessionId, threadId: session.threadId };
      const details = { reason: 'turn_ended' };
      await new Audit(tx).record({ event: 'session.released', ...place, details });
      return endSandbox(tx, sandboxId, { kind: 'ended', session }, 'released');
    });
    if (ended === undefined) return;
    this.#parts.inBackground('destroy the sandbox of a turn', () =>
      destroySandbox(broker, replica, ended),
    );
  }
}
