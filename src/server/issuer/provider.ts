/** One instance of oidc-provider for one state of the keys, with what it leaves out put around it. */
import type { KoaContextWithOIDC, OIDCContext, Provider } from 'oidc-provider';
import type { Logger } from '../../base/logger.js';
import { Secret } from '../../base/secret.js';
import { SCOPES } from '../../protocol/scopes.js';
import { GRANT_TYPES, POLL_INTERVAL_SECONDS } from '../../protocol/shapes/issuer.js';
import { verifyClientSecret } from '../tokens/client-secret.js';
import { SCOPE_CLAIMS } from './accounts.js';
import { fieldsIn } from './fields.js';
import { answerForJwt } from './own-tokens.js';
import {
  grantSeconds,
  isForPeople,
  type ProviderParts,
  providerConfiguration,
} from './provider-config.js';
import type { RefreshAnswers } from './refresh-answers.js';
import { EXCHANGE_PARAMETERS, type TokenExchange } from './token-exchange.js';
import { isUnavailable, unavailable } from './unavailable.js';

export interface ProviderSurroundings {
  readonly answers: RefreshAnswers;
  readonly exchange: TokenExchange;
  readonly logger: Logger;
}

export function createProvider(
  parts: ProviderParts,
  { answers, exchange, logger }: ProviderSurroundings,
): Provider {
  const provider = new parts.library.Provider(parts.url, providerConfiguration(parts));
  // Host, scheme and address are set by us on every request, so what stands there is true.
  provider.proxy = true;
  provider.Client.prototype.compareClientSecret = function (given) {
    return verifyClientSecret(new Secret(given), new Secret(this.clientSecret ?? ''));
  };
  provider.registerGrantType(
    GRANT_TYPES.tokenExchange,
    (ctx) => exchange.handle(ctx),
    EXCHANGE_PARAMETERS,
    ['audience', 'resource'],
  );
  provider.use<object, { oidc: OIDCContext }>(async (ctx, next) => {
    try {
      await next();
      if (isUnavailable(failures.get(ctx))) return sayUnavailable(ctx);
      await complete(ctx);
    } catch (error) {
      logger.error('the issuer failed', { error });
      if (!isUnavailable(error)) throw error;
      sayUnavailable(ctx);
    }
  });
  // The library answers whatever fails with the same 500.
  const failures = new WeakMap<object, Error>();
  provider.on('server_error', (ctx, error) => {
    failures.set(ctx, error);
  });
  // Else Koa prints what is logged already.
  provider.silent = true;
  listen(provider, logger);
  return provider;

  async function complete(ctx: KoaContextWithOIDC): Promise<void> {
    switch (ctx['_matchedRouteName']) {
      case 'discovery':
        // The library lists only those of OpenID.
        ctx.body = { ...fieldsIn(ctx.body), scopes_supported: SUPPORTED_SCOPES };
        return;
      case 'device_authorization':
        if (ctx.status === 200)
          ctx.body = { ...fieldsIn(ctx.body), interval: POLL_INTERVAL_SECONDS };
        return;
      case 'token':
        if (answers.replace(ctx)) return;
        tellLife(ctx);
        await answers.keep(ctx);
        return;
      case 'introspection':
      case 'revocation':
        await answerForJwt(ctx, parts.tokens);
        return;
    }
  }
}

/** The token's own life says nothing of the login's, which the approver chose. */
function tellLife(ctx: KoaContextWithOIDC): void {
  const body = fieldsIn(ctx.body);
  if (ctx.status !== 200 || body['refresh_token'] === undefined) return;
  ctx.body = { ...body, refresh_token_expires_in: grantSeconds(ctx) };
}

/** Whatever was to be said: a redirect, too, would tell the client that we are broken. */
function sayUnavailable(ctx: KoaContextWithOIDC): void {
  ctx.remove('Location');
  const { status, headers, text } = unavailable(ctx.req, isForPeople(ctx.path));
  ctx.status = status;
  ctx.body = text;
  ctx.set({ ...headers });
}

const SUPPORTED_SCOPES = [...Object.keys(SCOPE_CLAIMS), ...Object.keys(SCOPES)];

/** The library's words on the wire are general; what was really wrong is for the log. */
function listen(provider: Provider, logger: Logger): void {
  const refused = (
    ctx: KoaContextWithOIDC,
    error: Error & { error_detail?: string | undefined },
  ) => {
    // A poll that comes before the decision is how the device flow works.
    const isUsual = error.message === 'authorization_pending' || error.message === 'slow_down';
    logger[isUsual ? 'debug' : 'info']('refused', {
      route: ctx.oidc?.route,
      client_id: ctx.oidc?.client?.clientId,
      error: error.message,
      detail: error.error_detail,
    });
  };
  provider.on('grant.error', refused);
  provider.on('authorization.error', refused);
  provider.on('device_authorization.error', refused);
  provider.on('introspection.error', refused);
  provider.on('revocation.error', refused);
  provider.on('server_error', (ctx, error) => {
    logger.error('the issuer failed', { route: ctx.oidc?.route, error });
  });
}
