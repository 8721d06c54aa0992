/** For whoever comes with an access token: which sandbox they may reach, and a short-lived token of the sandbox's own in their name. */

import type { Clock } from '../../../base/clock.js';
import type { Secret } from '../../../base/secret.js';
import { allows, type Capability } from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import { SANDBOX_TOKEN_SECONDS } from '../../../protocol/lifetimes.js';
import type { Principal } from '../../../protocol/principal.js';
import type { Db } from '../../store/db.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { HeldSandbox } from '../../store/sessions.js';
import { decideCapabilities, requirePolicy } from '../policy/decide.js';
import { findSandbox } from '../sandboxes/find.js';
import { stillStarting } from '../sandboxes/wake.js';
import type { Caller } from '../sessions/caller.js';
import type { MintToken } from '../tokens/mint.js';
import { unreachable } from './address.js';

export interface ReachParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly mint: MintToken;
  /** Starts one that sleeps, and waits for it. */
  readonly wake: (held: HeldSandbox, caller: Caller, signal: AbortSignal) => Promise<SandboxRecord>;
}

export interface Reached {
  readonly sandbox: SandboxRecord;
  readonly endpoints: { readonly httpUrl: string; readonly wsUrl: string };
  readonly token: Secret;
  readonly jti: string;
}

export interface Wanted {
  readonly sandboxId: string;
  /** What to ask for; what is allowed of it is in the token. */
  readonly capabilities: readonly Capability[];
  /** Without this one: CAPABILITY_DENIED. Absent: any will do. */
  readonly needed?: Capability | undefined;
  readonly lifeSeconds: number;
  readonly signal: AbortSignal;
}

export class Reach {
  readonly #parts: ReachParts;
  /** Those that were made for a request a moment ago, so that asking in a loop does not fill the audit. */
  readonly #recent = new Map<string, Recent>();

  constructor(parts: ReachParts) {
    this.#parts = parts;
  }

  /** NOT_FOUND, FORBIDDEN, CAPABILITY_DENIED or SANDBOX_STARTING. One that sleeps is woken: it is being used. */
  async reach(caller: Caller, wanted: Wanted): Promise<Reached> {
    const { db, clock, mint } = this.#parts;
    const { principal, requestId } = caller;
    const found = await findSandbox(db, wanted.sandboxId, caller);
    const { session, access } = found;
    const policy = await requirePolicy(db, {
      principal,
      tenant: session.tenant,
      threadId: session.threadId,
      requestId,
    });
    const { capabilities } = decideCapabilities(policy, {
      principal,
      requested: wanted.capabilities,
      ...(access.kind === 'grant' && { grant: access.grant.capabilities }),
    });
    if (wanted.needed !== undefined && !allows(capabilities, wanted.needed))
      throw denied(wanted.needed);
    if (found.sandbox.state === 'provisioning') throw stillStarting();
    const sandbox =
      found.sandbox.state === 'active'
        ? found.sandbox
        : await this.#parts.wake(found, caller, wanted.signal);
    const { endpoints } = sandbox;
    if (endpoints === undefined) throw unreachable('active, and nowhere');
    const key = JSON.stringify([
      session.id,
      sandbox.keyGeneration,
      principal.sub,
      principal.clientId,
      principal.act ?? null,
      capabilities,
      access.kind === 'grant' ? access.grant.id : null,
    ]);
    const now = clock.monotonic();
    const recent = this.#recent.get(key);
    const isUsable = recent !== undefined && now - recent.atMs < REUSED_MS;
    if (isUsable && wanted.lifeSeconds === SANDBOX_TOKEN_SECONDS.min)
      return { sandbox, endpoints, token: recent.token, jti: recent.jti };
    const notAfterMs = earliest(
      principal.expiresAt,
      access.kind === 'grant' ? access.grant.expiresAtMs : undefined,
    );
    const minted = await db.transaction((tx) =>
      mint(tx, {
        session,
        sandbox,
        principal,
        capabilities,
        ttlSeconds: wanted.lifeSeconds,
        tokenMode: policy.tenant.tokenMode,
        ...(access.kind === 'grant' && { grantId: access.grant.id }),
        notAfterMs,
        requestId,
      }),
    );
    const { token, jti } = minted;
    if (minted.expiresAtMs - minted.issuedAtMs > REUSED_MS) this.#remember(key, token, jti, now);
    return { sandbox, endpoints, token, jti };
  }

  /** A sandbox did not take it: the next one gets another. */
  forget(token: Secret): void {
    for (const [key, recent] of this.#recent) if (recent.token === token) this.#recent.delete(key);
  }

  #remember(key: string, token: Secret, jti: string, atMs: number): void {
    this.#recent.delete(key);
    this.#recent.set(key, { token, jti, atMs });
    for (const [old, recent] of this.#recent) {
      if (this.#recent.size <= MOST_RECENT && atMs - recent.atMs < REUSED_MS) return;
      this.#recent.delete(old);
    }
  }
}

interface Recent {
  readonly token: Secret;
  readonly jti: string;
  readonly atMs: number;
}

/** Well within the life of the shortest, so that a request which begins with one also ends with it. */
const REUSED_MS = 20_000;
const MOST_RECENT = 10_000;

function earliest(first: number, second: number | undefined): number {
  return second === undefined ? first : Math.min(first, second);
}

function denied(capability: Capability): AilsdError {
  return new AilsdError('CAPABILITY_DENIED', `this needs the capability ${capability}`, {
    details: { capability },
  });
}

export function isSamePrincipal(one: Principal, other: Principal): boolean {
  return (
    one.sub === other.sub &&
    one.tenant === other.tenant &&
    one.clientId === other.clientId &&
    JSON.stringify(one.act ?? null) === JSON.stringify(other.act ?? null)
  );
}
