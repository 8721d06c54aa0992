/** `GET /v1/whoami`: the caller, as its access token says. */
import type { WhoamiAnswer } from '../../protocol/shapes/whoami.js';
import type { RouteCode } from './call.js';

export const whoami: RouteCode = ({ principal }) => {
  const { sub, kind, tenant, clientId, scopes, expiresAt, act, threads } = principal;
  const body: WhoamiAnswer = {
    sub,
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
