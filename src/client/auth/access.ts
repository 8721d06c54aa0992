/** The one door to an access token, for every command. Loads nothing but itself while a stored one is good. */
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Credential } from '../credentials/credential.js';
import type { CredentialStore, StoreKind } from '../credentials/credential-store.js';
import { type CredentialSource, findCredentialSource } from '../credentials/headless.js';
import { claimsOf } from './claims.js';
import { isDue, isUsable, renewAtMs } from './freshness.js';
import type { AuthWorld } from './world.js';

export interface Access {
  readonly token: Secret;
  /** Milliseconds since 1970; absent for a token from outside that does not say. */
  readonly expiresAtMs: number | undefined;
  /** When to ask again; absent where asking again gives the same token. */
  readonly renewAtMs: number | undefined;
  readonly scopes: readonly string[];
  readonly origin: AccessOrigin;
}

export type AccessOrigin =
  /** A variable, alone responsible: what is stored was not looked at. */
  | { readonly kind: 'variable'; readonly variable: string }
  | {
      readonly kind: 'stored';
      readonly store: StoreKind;
      /** For people. */
      readonly place: string;
      readonly account: string;
      /** How people know the account. */
      readonly name: string | undefined;
      readonly tenant: string | undefined;
      /** When the login ends however often it is renewed. */
      readonly loginExpiresAtMs: number | undefined;
    };

export interface AccessRequest {
  readonly signal?: AbortSignal | undefined;
  /** The server has just refused the token that this door gave: get another one, if there is a way. */
  readonly refused?: boolean | undefined;
}

/**
 * The first source that is set is used, and no other: UNAUTHENTICATED, TOKEN_EXPIRED or LOGIN_FAILED names it where it
 * fails. Else the login that is stored, renewed when two thirds of its life are over. Else NOT_LOGGED_IN. Never asks
 * anybody, never opens anything.
 */
export async function currentAccess(
  world: AuthWorld,
  request: AccessRequest = {},
): Promise<Access> {
  const source = findCredentialSource(world.variable);
  if (source?.kind === 'token') return accessFromToken(source, world.clock.now());
  if (source !== undefined) {
    const { accessFromSource } = await import('./source-access.js');
    return accessFromSource(world, source, request.signal);
  }
  using chosen = await world.openStore('use');
  return await accessFromStore(world, chosen.store, request);
}

/** The error for a token that the server refused, in the words of where it came from. */
export function refusedAccess({ origin, expiresAtMs }: Access, nowMs: number): AilsdError {
  if (origin.kind === 'stored') {
    return new AilsdError('LOGIN_REVOKED', 'the server does not accept the login any more');
  }
  const { variable } = origin;
  const isOver = expiresAtMs !== undefined && expiresAtMs <= nowMs;
  if (isOver) return expiredToken(variable);
  return new AilsdError('UNAUTHENTICATED', `the server does not accept the token of ${variable}`, {
    details: { variable },
    hint: `set ${variable} to a token of this server, or unset it and run \`ailsd login\``,
  });
}

/** As it is: neither refreshed nor replaced. */
function accessFromToken(
  { variable, read }: Extract<CredentialSource, { kind: 'token' }>,
  nowMs: number,
): Access {
  const token = read();
  const claims = claimsOf(token.reveal());
  const expiresAtMs = claims?.expiresAtMs;
  if (expiresAtMs !== undefined && expiresAtMs + CLOCK_LEEWAY_MS <= nowMs) {
    throw expiredToken(variable);
  }
  const origin = { kind: 'variable', variable } as const;
  return { token, expiresAtMs, renewAtMs: undefined, scopes: claims?.scopes ?? [], origin };
}

/** A server gives as much to a clock that is wrong; whether ours is, only the server can say. */
const CLOCK_LEEWAY_MS = 30_000;

async function accessFromStore(
  world: AuthWorld,
  store: CredentialStore,
  { signal, refused = false }: AccessRequest,
): Promise<Access> {
  const { clock, configFolder, userId } = world;
  const url = world.url();
  const kept = await store.current(url);
  if (kept === undefined) {
    throw new AilsdError('NOT_LOGGED_IN', `there is no login for ${url}`, { details: { url } });
  }
  if (!refused && !isDue(kept, clock.now())) return toAccess(kept, store);
  if (kept.refreshToken === undefined) {
    const access = toAccess(kept, store);
    if (isUsable(kept, clock.now())) {
      if (refused) throw refusedAccess(access, clock.now());
      return access;
    }
    throw new AilsdError('TOKEN_EXPIRED', 'the login has ended and cannot be renewed', {
      hint: 'run `ailsd login`',
    });
  }
  const { refreshCredential } = await import('./refresh.js');
  const http = await world.http();
  const options = { store, folder: configFolder, userId, http, clock, signal, refused };
  return toAccess(await refreshCredential(kept, options), store);
}

function toAccess(credential: Credential, { kind, place }: CredentialStore): Access {
  const { accessToken, accessExpiresAtMs, scopes, refreshToken } = credential;
  const { account, name, tenant, loginExpiresAtMs } = credential;
  return {
    token: accessToken,
    expiresAtMs: accessExpiresAtMs,
    renewAtMs: refreshToken === undefined ? undefined : renewAtMs(credential),
    scopes,
    origin: { kind: 'stored', store: kind, place, account, name, tenant, loginExpiresAtMs },
  };
}

function expiredToken(variable: string): AilsdError {
  return new AilsdError('TOKEN_EXPIRED', `the token of ${variable} has expired`, {
    details: { variable },
    hint: `set ${variable} to a fresh one, or unset it and run \`ailsd login\``,
  });
}
