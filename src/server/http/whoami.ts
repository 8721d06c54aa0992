/** `GET /v1/whoami`: the caller, as its access token says, and by the name people know. */
import type { Principal } from '../../protocol/principal.js';
import type { WhoamiAnswer } from '../../protocol/shapes/whoami.js';
import type { RouteCode } from './call.js';

/** `undefined` where there is none, or none can be told just now. */
export type FindName = (principal: Principal) => Promise<string | undefined>;

export function whoami(findName: FindName = async () => undefined): RouteCode {
  return async ({ principal }) => {
    const { sub, kind, tenant, clientId, scopes, expiresAt, act, threads } = principal;
    const name = await findName(principal);
    const body: WhoamiAnswer = {
      sub,
      ...(name === undefined ? {} : { name }),
      principal: kind,
      tenant,
      client_id: clientId,
      scopes: [...scopes],
      expires_at: new Date(expiresAt).toISOString(),
      ...(act === undefined ? {} : { act: { ...act } }),
      ...(threads === undefined ? {} : { threads: [...threads] }),
    };
    return { body };
  };
}
