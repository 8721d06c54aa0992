/**
 * The session an invite leads to. Whoever made the invite decided that its bearer may: it was made here for a session, or
 * elsewhere with the shared secret for a room or a run of its own, which then gets a session in the default tenant.
 */
import type { Capability } from '../../../protocol/capabilities.js';
import { DEFAULT_TENANT } from '../../../protocol/claims.js';
import { AilsdError } from '../../../protocol/errors.js';
import { isThreadId, type ThreadId } from '../../../protocol/ids.js';
import type { Principal } from '../../../protocol/principal.js';
import { CodeTurns } from '../../store/code-turns.js';
import type { InviteOrigin } from '../../store/invites.js';
import { type HeldSandbox, Sessions } from '../../store/sessions.js';
import type { OpenedSession } from '../code/calls.js';
import { type CallerPolicy, requirePolicy } from '../policy/decide.js';
import { type WakeParts, wake } from '../sandboxes/wake.js';
import type { Negotiator } from '../sessions/negotiate.js';
import type { MintToken } from '../tokens/mint.js';

export interface InvitedParts extends WakeParts {
  readonly negotiator: Negotiator;
  readonly mint: MintToken;
}

/** A bearer, by what its invite says and nothing else. */
export interface Guest {
  readonly sub: string;
  readonly tenant: string;
  readonly threadId: ThreadId;
  /** Who asked for the invite, where that was here. */
  readonly origin: InviteOrigin | undefined;
  readonly capability: Capability;
  readonly requestId: string;
}

/** Absent in invites from elsewhere. */
const FOREIGN_CLIENT = 'invite';

export class InvitedSessions {
  readonly #parts: InvitedParts;

  constructor(parts: InvitedParts) {
    this.#parts = parts;
  }

  /** Undefined: the session it was made for is over, or the run has a name that can be no thread. */
  async guestOf(
    sub: string,
    asked: {
      readonly room: string | undefined;
      readonly origin: InviteOrigin | undefined;
      readonly capability: Capability;
      readonly requestId: string;
    },
  ): Promise<Guest | undefined> {
    const { origin, capability, requestId } = asked;
    const tenant = origin?.tenant ?? DEFAULT_TENANT;
    const threadId = asked.room ?? (await this.#threadOf(origin)) ?? (origin ? undefined : sub);
    if (threadId === undefined || !isThreadId(threadId)) return undefined;
    return { sub, tenant, threadId, origin, capability, requestId };
  }

  policy(guest: Guest): Promise<CallerPolicy> {
    const { tenant, threadId, requestId } = guest;
    const { db } = this.#parts.broker;
    return requirePolicy(db, { principal: principalOf(guest), tenant, threadId, requestId });
  }

  /** As long as it may live; see `renew`. */
  async open(
    guest: Guest,
    policy: CallerPolicy,
    ttlSeconds: number,
    signal: AbortSignal,
  ): Promise<OpenedSession> {
    const { db } = this.#parts.broker;
    const scope = { tenant: guest.tenant, type: 'thread', id: guest.threadId } as const;
    const held = await new Sessions(db).findOpen(scope);
    if (held !== undefined) return this.#enter(guest, held, policy, ttlSeconds, signal);
    const { origin } = guest;
    if (origin !== undefined)
      throw new AilsdError('SESSION_NOT_FOUND', 'the session of the invite is over');
    return this.#parts.negotiator.negotiate({
      caller: { principal: principalOf(guest), requestId: guest.requestId },
      scope: { type: 'thread', id: guest.threadId },
      mode: 'ensure',
      requested: [guest.capability],
      vocabulary: 'canonical',
      capabilitiesField: 'requested_capabilities',
      hintField: 'sandbox_hint',
      ttl: ttlSeconds,
      waitMs: START_WAIT_MS,
      signal,
      // A run that came without a session takes the one it gets with it; a shell stays.
      onCreated: async (tx, { id, sandboxId }) => {
        if (guest.capability !== 'process') return;
        await new CodeTurns(tx).add({ sessionId: id, sandboxId, turnId: undefined });
      },
    });
  }

  async #enter(
    guest: Guest,
    { session, sandbox, nowMs }: HeldSandbox,
    policy: CallerPolicy,
    ttlSeconds: number,
    signal: AbortSignal,
  ): Promise<OpenedSession> {
    const { broker, mint } = this.#parts;
    const { requestId, capability } = guest;
    const principal = principalOf(guest);
    const caller = { principal, requestId };
    const awake = await wake(this.#parts, { session, sandbox, nowMs }, caller, signal);
    const { endpoints } = awake;
    if (endpoints === undefined) throw new AilsdError('INTERNAL', 'a sandbox without a place');
    const { tokenMode } = policy.tenant;
    const minted = await broker.db.transaction((tx) =>
      mint(tx, {
        session,
        sandbox: awake,
        principal,
        capabilities: [capability],
        ttlSeconds,
        tokenMode,
        requestId,
      }),
    );
    return { session, sandbox: { ...awake, endpoints }, minted };
  }

  async #threadOf(origin: InviteOrigin | undefined): Promise<string | undefined> {
    if (origin === undefined) return undefined;
    const held = await new Sessions(this.#parts.broker.db).find(origin.sessionId);
    return held?.session.endedAtMs === undefined ? held?.session.threadId : undefined;
  }
}

const START_WAIT_MS = 60_000;

/** The identity everywhere is the invite's `sub`. What it allows is settled by the capability it is opened with. */
function principalOf({ sub, tenant, origin }: Guest): Principal {
  return {
    sub,
    kind: 'service',
    tenant,
    clientId: origin?.clientId ?? FOREIGN_CLIENT,
    scopes: ['write:sandbox', 'exec:sandbox', 'attach:sandbox'],
    expiresAt: Number.MAX_SAFE_INTEGER,
    jti: 'invite',
  };
}
