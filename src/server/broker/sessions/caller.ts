/** Who asks, as the audit names them. */
import type { Principal } from '../../../protocol/principal.js';
import type { AuditRecord } from '../../store/audit.js';
import type { SessionRecord } from '../../store/sessions.js';

export interface Caller {
  readonly principal: Principal;
  readonly requestId: string;
}

export function auditOf(
  { principal, requestId }: Caller,
  session?: Pick<SessionRecord, 'id' | 'tenant' | 'threadId' | 'sandboxId'>,
): Omit<AuditRecord, 'event'> {
  return {
    tenant: session?.tenant ?? principal.tenant,
    subject: principal.sub,
    actor: principal.act?.sub,
    clientId: principal.clientId,
    requestId,
    threadId: session?.threadId,
    sessionId: session?.id,
    sandboxId: session?.sandboxId,
  };
}

/** Whose `Idempotency-Key` it is: another principal's same key is another key. */
export function callerKey({ tenant, sub, clientId, act }: Principal): string {
  return JSON.stringify([tenant, sub, clientId, act?.sub ?? null]);
}
