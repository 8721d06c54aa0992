/** A fresh token for a session in use. It does not lengthen the lease: that is the heartbeat's. */
import type { Secret } from '../../../base/secret.js';
import { requirePolicy } from '../policy/decide.js';
import { type RefreshParts, type Renewed, refreshToken } from '../tokens/refresh.js';
import type { Caller } from './caller.js';
import type { FoundSession } from './find.js';
import { leaseOver } from './heartbeat.js';

export async function refreshSession(
  parts: RefreshParts,
  found: FoundSession,
  asked: {
    readonly caller: Caller;
    readonly currentToken?: Secret | undefined;
    readonly ttl?: number | undefined;
  },
): Promise<Renewed> {
  const { session, sandbox, access } = found;
  if (sandbox.state === 'idle' || sandbox.state === 'suspended') throw leaseOver();
  const { caller, currentToken, ttl } = asked;
  const policy = await requirePolicy(parts.db, {
    principal: caller.principal,
    tenant: session.tenant,
    threadId: session.threadId,
    requestId: caller.requestId,
  });
  const grant = access.kind === 'grant' ? access.grant : undefined;
  return refreshToken(parts, { caller, policy, session, sandbox, grant, currentToken, ttl });
}
