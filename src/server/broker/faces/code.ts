/** `/v1/code/*` (S4): code for a turn of an agent, and what became of earlier calls. */
import { createHash } from 'node:crypto';
import { AilsdError } from '../../../protocol/errors.js';
import type { RouteName } from '../../../protocol/routes.js';
import {
  codeRequest,
  type Invocation,
  invocationQuery,
  outputQuery,
} from '../../../protocol/shapes/code.js';
import type { Call, RouteCode } from '../../http/call.js';
import { Audit } from '../../store/audit.js';
import { ClientPolicies } from '../../store/client-policies.js';
import type { Db } from '../../store/db.js';
import { type InvocationRecord, Invocations } from '../../store/invocations.js';
import { Sessions } from '../../store/sessions.js';
import type { Calls } from '../code/calls.js';
import { toCodeAnswer } from '../code/outcome.js';
import { CODE_TOKEN_SECONDS, type CodeRunner, codeTimeout } from '../code/run-code.js';
import type { Turns } from '../code/turns.js';
import { decideCapabilities, requirePolicy } from '../policy/decide.js';
import { auditOf, type Caller } from '../sessions/caller.js';
import { accessTo, isWithinPins } from '../sessions/find.js';
import { pageAsked, toPage } from './pages.js';
import { callerOf } from './request-headers.js';
import { timeOf } from './session-shapes.js';

export interface CodeFaceParts {
  readonly db: Db;
  readonly calls: Calls;
  readonly runner: CodeRunner;
  readonly turns: Turns;
}

export function codeRoutes(parts: CodeFaceParts): Partial<Record<RouteName, RouteCode>> {
  const { db } = parts;
  return {
    executeCode: (call) => execute(parts, call),

    async listInvocations(call) {
      const query = call.query(invocationQuery);
      const page = pageAsked(query);
      const { principal } = call;
      const asked = { limit: page.limit + 1, after: page.after, threadId: query.thread_id };
      const found = (await new Invocations(db).list(principal, asked)).filter(({ threadId }) =>
        isWithinPins(principal, threadId),
      );
      return { body: toPage(found, page, ({ id }) => id, toWire) };
    },

    async getInvocation(call) {
      return { body: toWire(await findInvocation(db, call)) };
    },

    async getInvocationOutput(call) {
      const { stream = 'stdout' } = call.query(outputQuery);
      const { id } = await findInvocation(db, call);
      return {
        headers: { 'Content-Type': 'application/octet-stream' },
        stream: new Invocations(db).output(id, stream),
      };
    },
  };
}

async function execute(parts: CodeFaceParts, call: Call) {
  const { db } = parts;
  const { code, language = 'python', ...asked } = await call.body(codeRequest);
  const { thread_id: threadId, turn_id: turnId, timeout_ms: timeoutMs } = asked;
  const caller = callerOf(call);
  const { principal, requestId } = caller;
  const agentId = principal.act?.sub ?? principal.sub;
  const { exchange } = call;
  const called = await parts.calls.perform(
    {
      via: 'code',
      tenant: principal.tenant,
      agentId,
      countedAs: agentId,
      owner: principal.sub,
      clientId: principal.clientId,
      requestId,
      threadId,
      turnId,
      language,
      codeHash: createHash('sha256').update(code).digest('hex'),
      authorize: () => checkAllowed(db, caller, threadId),
      policy: () => requirePolicy(db, { principal, threadId, requestId }),
      open: (_, signal) =>
        parts.turns.open({ caller, threadId, turnId, tokenSeconds: CODE_TOKEN_SECONDS, signal }),
      signal: exchange.signal,
    },
    (work) =>
      parts.runner.run(work, {
        text: code,
        language,
        timeoutMs: codeTimeout(timeoutMs),
        requestId,
      }),
  );
  const { outcome, invocationId, sessionId } = called;
  exchange.note({
    thread_id: threadId,
    invocation_id: invocationId,
    session_id: sessionId,
    exit_status: outcome.exitStatus,
  });
  return { body: toCodeAnswer(outcome, { invocationId, sessionId }) };
}

/** What is the caller's own fault is told as such, before anything is counted: whose thread it is, and what the token allows. */
async function checkAllowed(db: Db, { principal }: Caller, threadId: string): Promise<void> {
  const scope = { tenant: principal.tenant, type: 'thread', id: threadId } as const;
  const held = await new Sessions(db).findOpen(scope);
  const access = held && (await accessTo(db, held.session, principal));
  if (!isWithinPins(principal, threadId) || (held !== undefined && access === undefined))
    throw new AilsdError('FORBIDDEN', 'the thread is not yours');
  if (held === undefined && !principal.scopes.includes('write:sandbox'))
    throw new AilsdError('FORBIDDEN', 'there is no session, and to make one takes write:sandbox', {
      details: { scope: 'write:sandbox' },
      hint: 'log in again with the missing scope',
    });
  const policy = await new ClientPolicies(db).find(principal.clientId);
  decideCapabilities(
    { ceiling: policy?.ceiling },
    {
      principal,
      requested: ['process'],
      grant: access?.kind === 'grant' ? access.grant.capabilities : undefined,
    },
  );
}

/** NOT_FOUND for another's, as for one that never was. An administrator's look is recorded. */
async function findInvocation(db: Db, call: Call): Promise<InvocationRecord> {
  const found = await new Invocations(db).find(call.parameter('invocation_id'));
  const { principal } = call;
  const isOwn =
    found?.tenant === principal.tenant &&
    found.owner === principal.sub &&
    isWithinPins(principal, found.threadId);
  const isAdmin = principal.scopes.includes('admin:sandbox');
  if (found === undefined || !(isOwn || isAdmin))
    throw new AilsdError('NOT_FOUND', 'there is no such call');
  if (!isOwn)
    await new Audit(db).record({
      event: 'admin.access',
      ...auditOf(callerOf(call)),
      tenant: found.tenant,
      threadId: found.threadId,
      details: { owner: found.owner, invocation: found.id },
    });
  return found;
}

function toWire(record: InvocationRecord): Invocation {
  return {
    id: record.id,
    created_at: timeOf(record.createdAtMs),
    tenant_id: record.tenant,
    agent_id: record.agentId,
    session_id: record.sessionId,
    thread_id: record.threadId,
    turn_id: record.turnId,
    executed_code_hash: record.codeHash,
    exit_status: record.exitStatus,
    failure_reason: record.failureReason,
    duration_ms: record.durationMs,
    stdout_bytes: record.stdoutBytes,
    stderr_bytes: record.stderrBytes,
    stdout_truncated: record.isStdoutTruncated,
    stderr_truncated: record.isStderrTruncated,
  };
}
