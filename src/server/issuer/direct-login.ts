/** A login that nobody approves at a page: of the one user of a stack that somebody runs for themselves. Only its own process can ask for it. */
import type { Provider } from 'oidc-provider';
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { formatScopes, LOGIN_SCOPES } from '../../protocol/scopes.js';
import { CLI_CLIENT_ID } from '../../protocol/shapes/issuer.js';
import { Audit } from '../store/audit.js';
import type { Db } from '../store/db.js';
import { findEnabledUser } from './accounts.js';
import { offer, saveGrant } from './approval.js';

export interface DirectLogin {
  readonly provider: Provider;
  readonly db: Db;
  readonly resource: string;
  readonly userId: string;
  readonly lifeSeconds: number;
  readonly nowMs: number;
}

/** The refresh token of a new login of the command line. */
export async function logInDirectly(parts: DirectLogin): Promise<Secret> {
  const { provider, db, resource, userId, lifeSeconds, nowMs } = parts;
  const [client, user] = await Promise.all([
    provider.Client.find(CLI_CLIENT_ID),
    findEnabledUser(db, userId),
  ]);
  if (client === undefined || user === undefined)
    throw new AilsdError('NOT_FOUND', 'there is no such account, or no command line to log in');
  const offered = offer(`openid ${formatScopes(LOGIN_SCOPES)}`, client, user);
  const grantId = await saveGrant({
    provider,
    resource,
    client,
    user,
    offered,
    approval: { scopes: offered.scopes, lifeSeconds, threads: [] },
    origin: { address: '127.0.0.1', userAgent: 'ailsd dev' },
    nowMs,
  });
  // Its own life, since no request says what that would be; the library's types leave it out.
  const life = { expiresIn: lifeSeconds };
  const token = new provider.RefreshToken({
    ...life,
    accountId: user.id,
    client,
    grantId,
    scope: [...offered.identity, ...offered.scopes].join(' '),
    resource,
    gty: 'device_code',
    authTime: Math.floor(nowMs / 1000),
    expiresWithSession: false,
    rotations: 0,
  });
  const secret = new Secret(await token.save());
  await new Audit(db).record({
    event: 'login_approved',
    subject: user.id,
    tenant: user.tenant,
    clientId: CLI_CLIENT_ID,
    actor: 'operator',
    details: { grant_id: grantId, scope: formatScopes(offered.scopes), life_seconds: lifeSeconds },
  });
  return secret;
}
