/** Makes invites (S0): 60 seconds, one use, for the room they name and nothing besides. */
import { Secret } from '../../../base/secret.js';
import { allows } from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import { isThreadId, newId, type RandomFill } from '../../../protocol/ids.js';
import { INVITE_SECONDS } from '../../../protocol/lifetimes.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { Invites } from '../../store/invites.js';
import { ServerSecrets } from '../../store/server-secrets.js';
import { hashInvite, type InviteEndpoint, signInvite } from '../../tokens/invite.js';
import { type CallerPolicy, decideCapabilities } from '../policy/decide.js';
import { auditOf, type Caller } from '../sessions/caller.js';
import type { FoundSession } from '../sessions/find.js';

export interface InviteParts {
  readonly db: Db;
  readonly random: RandomFill;
  readonly secret: Secret;
  /** Where the gateway is reached, as http(s). */
  readonly url: string;
}

export interface InviteRequest {
  readonly caller: Caller;
  readonly policy: CallerPolicy;
  readonly found: FoundSession;
  readonly endpoint: InviteEndpoint;
  /** Of a computer invite: the session's thread, or `*`. */
  readonly room?: string | undefined;
  readonly isElevated?: boolean | undefined;
}

export interface MadeInvite {
  readonly token: Secret;
  readonly expiresAtMs: number;
  readonly url: string;
}

export async function createInvite(
  { db, random, secret, url }: InviteParts,
  request: InviteRequest,
): Promise<MadeInvite> {
  const { caller, found, endpoint } = request;
  const { session } = found;
  checkAllowed(request);
  const { principal } = caller;
  const room = request.room ?? session.threadId;
  const jti = newId('token', random);
  return db.transaction(async (tx) => {
    const iat = Math.floor((await tx.now()) / 1000);
    const exp = iat + INVITE_SECONDS;
    const times = { iat, exp, jti };
    const sub =
      endpoint === 'execute' ? newId('invocation', random).replace('inv_', 'run_') : principal.sub;
    const token =
      endpoint === 'execute'
        ? signInvite(secret, { sub, scopes: 'execution', ...times })
        : signInvite(secret, {
            sub,
            room: isThreadId(room) ? room : '*',
            ...(request.isElevated && { elevated: true }),
            ...times,
          });
    await new Invites(tx).add(hashInvite(jti), exp * 1000, {
      tenant: session.tenant,
      sessionId: session.id,
      issuedTo: principal.sub,
      actor: principal.act?.sub,
      clientId: principal.clientId,
    });
    const details = {
      endpoint,
      sub,
      ...(endpoint === 'computer' && { room, elevated: request.isElevated === true }),
      expires_at: new Date(exp * 1000).toISOString(),
    };
    await new Audit(tx).record({
      event: 'invite.issued',
      ...auditOf(caller, session),
      jti,
      details,
    });
    return { token, expiresAtMs: exp * 1000, url: `${url.replace(/^http/, 'ws')}/${endpoint}` };
  });
}

/** An invite has no capabilities of its own, so it takes having in full what it leads to. */
function checkAllowed(request: InviteRequest): void {
  const { caller, policy, found, endpoint, room, isElevated } = request;
  const { principal } = caller;
  const { session, access } = found;
  if (endpoint === 'execute' && (room !== undefined || isElevated))
    throw badField(room === undefined ? 'elevated' : 'room', 'only computer invites have that');
  if (room !== undefined && room !== '*' && room !== session.threadId)
    throw badField('room', "the room is the session's thread");
  const isAdmin = principal.scopes.includes('admin:sandbox');
  if ((room === '*' || isElevated) && !isAdmin)
    throw new AilsdError('FORBIDDEN', 'the room * and elevation take admin:sandbox', {
      details: { scope: 'admin:sandbox' },
    });
  const needed = endpoint === 'execute' ? 'process' : 'shell';
  const { capabilities } = decideCapabilities(policy, {
    principal,
    requested: [needed],
    grant: access.kind === 'grant' ? access.grant.capabilities : undefined,
  });
  if (!allows(capabilities, needed))
    throw new AilsdError('FORBIDDEN', `an invite to ${endpoint} takes ${needed}`, {
      details: { capability: needed },
    });
}

/** The operator's `SANDBOX_AUTH_SECRET`, or one that the replicas of this store share. At start-up. */
export async function openInviteSecret(
  db: Db,
  random: RandomFill,
  configured: Secret | undefined,
): Promise<Secret> {
  if (configured !== undefined) return configured;
  return new ServerSecrets(db).ensure(INVITE_SECRET, () => {
    const bytes = random(new Uint8Array(SECRET_BYTES));
    return new Secret(Buffer.from(bytes).toString('base64url'));
  });
}

const INVITE_SECRET = 'sandbox-auth-secret';
const SECRET_BYTES = 32;

function badField(field: string, message: string): AilsdError {
  return new AilsdError('INVALID_REQUEST', message, { details: { field } });
}
