/** What is settled before a route's code runs: whether there is room for the caller, who it is, and what its path names. */
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import type { SandboxId } from '../../protocol/ids.js';
import { parseRequest } from '../../protocol/parse.js';
import { PATH_PARAMETERS } from '../../protocol/path-parameters.js';
import type { Route } from '../../protocol/routes/route.js';
import { bearerOf } from './bearer.js';
import type { Caller } from './call.js';
import type { Exchange } from './exchange.js';
import { authenticate, type VerifyToken } from './principal.js';
import type { RateLimits } from './rate-limits.js';

/** A sandbox that proves to be itself; rejects with UNAUTHENTICATED. */
export type VerifySandbox = (assertion: Secret) => Promise<SandboxId>;

export interface CallerParts {
  readonly verify: VerifyToken;
  /** Absent: nothing here is for sandboxes. */
  readonly verifySandbox?: VerifySandbox | undefined;
  /** Absent: anybody may ask as often as they like. */
  readonly rates?: RateLimits | undefined;
}

/** Made once a route, so that a row which cannot be served is noticed at start-up. */
export function callerOf(
  route: Route,
  { verify, verifySandbox, rates }: CallerParts,
): (exchange: Exchange) => Promise<Caller> {
  const find = finderOf(route, verify, verifySandbox);
  // Whoever watches the server must not lose sight of it because there is much to see.
  if (rates === undefined || route.family === 'operations') return find;
  return async (exchange) => {
    rates.takeForAddress(exchange.origin.address);
    const caller = await find(exchange);
    if (caller.principal !== undefined) rates.takeForPrincipal(caller.principal);
    return caller;
  };
}

function finderOf(
  route: Route,
  verify: VerifyToken,
  verifySandbox: VerifySandbox | undefined,
): (exchange: Exchange) => Promise<Caller> {
  switch (route.auth) {
    // The last two are looked at by the route's own code, which knows the sandbox they are for.
    case 'none':
    case 'sandbox-token':
    case 'invite':
      return async () => NOBODY;
    case 'access-token':
      return async (exchange) => ({
        principal: await authenticate(exchange, verify, route.isMvp ? undefined : route.scopes),
      });
    case 'sandbox-key':
      if (verifySandbox !== undefined)
        return async (exchange) => {
          const sandboxId = await verifySandbox(bearerOf(exchange.request));
          exchange.note({ sandbox_id: sandboxId });
          return { sandboxId };
        };
  }
  throw new Error(`${route.path} asks for ${route.auth}, which is not served here`);
}

const NOBODY: Caller = {};

/** A parameter that can name nothing is the caller's mistake, named by its name. */
export function checkParameters(
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  for (const name in given) {
    const schema = isKnown(name) ? PATH_PARAMETERS[name] : undefined;
    if (schema === undefined || parseRequest(schema, given[name]).ok) continue;
    throw new AilsdError('INVALID_REQUEST', `the ${name} in the path is of another form`, {
      details: { field: name },
    });
  }
  return given;
}

function isKnown(name: string): name is keyof typeof PATH_PARAMETERS {
  return Object.hasOwn(PATH_PARAMETERS, name);
}
