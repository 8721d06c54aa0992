/** `/v1/logins`: people look at their own logins and end them, by a login that itself still stands. */
import { AilsdError } from '../../protocol/errors.js';
import type { LoginEntry, LoginPage } from '../../protocol/shapes/logins.js';
import type { Call, RouteCode } from '../http/call.js';
import type { Db } from '../store/db.js';
import { type Ending, type Login, Logins } from './logins.js';

export function loginRoutes(db: Db): Record<'listLogins' | 'endLogin' | 'endLogins', RouteCode> {
  const logins = new Logins(db);
  return {
    listLogins: async (call) => {
      const { current, seen } = await look(logins, call);
      const body: LoginPage = {
        items: seen.map((login) => toWire(login, login === current)),
        next_cursor: null,
      };
      return { body };
    },
    endLogin: async (call) => {
      const { seen } = await look(logins, call);
      const id = call.parameters['login_id'] ?? '';
      const isSeen = seen.some((login) => login.id === id);
      if (!isSeen || !(await logins.end(call.principal.sub, id, endingOf(call)))) throw noSuch();
      return { status: 204 };
    },
    endLogins: async (call) => {
      const { current } = await look(logins, call);
      if (current.threads.length > 0) {
        throw new AilsdError('FORBIDDEN', 'a login that is pinned to threads ends itself alone');
      }
      await logins.endAll(call.principal.sub, endingOf(call));
      return { status: 204 };
    },
  };
}

/**
 * What the caller may see: all that is its owner's, or, if it is pinned to threads, itself. An access token outlives
 * its login by minutes; here it does not count any more, or whoever was logged out could log others out.
 */
async function look(
  logins: Logins,
  { principal }: Call,
): Promise<{ readonly current: Login; readonly seen: readonly Login[] }> {
  if (principal.kind !== 'user') {
    throw new AilsdError('FORBIDDEN', 'only a person’s own login can look at logins');
  }
  const [all, id] = await Promise.all([
    logins.list(principal.sub),
    logins.idOfToken(principal.jti),
  ]);
  const current = all.find((login) => login.id === id);
  if (current === undefined) throw new AilsdError('UNAUTHENTICATED', 'the login has ended');
  return { current, seen: current.threads.length > 0 ? [current] : all };
}

function endingOf({ principal, exchange }: Call): Ending {
  const { tenant, clientId, jti } = principal;
  return { tenant, clientId, jti, requestId: exchange.requestId };
}

function noSuch(): AilsdError {
  return new AilsdError('NOT_FOUND', 'there is no such login', {
    details: { field: 'login_id' },
    hint: 'see `ailsd whoami --logins`',
  });
}

function toWire(login: Login, current: boolean): LoginEntry {
  const { origin, threads } = login;
  return {
    id: login.id,
    client_id: login.clientId,
    scopes: [...login.scopes],
    ...(threads.length > 0 && { threads: [...threads] }),
    ...(origin && { user_agent: origin.userAgent }),
    ...(origin && origin.address !== '' && { address: origin.address }),
    ...(origin?.machineName && { machine_name: origin.machineName }),
    created_at: new Date(login.createdAtMs).toISOString(),
    last_used_at: new Date(login.lastUsedAtMs).toISOString(),
    expires_at: new Date(login.expiresAtMs).toISOString(),
    current,
  };
}
