/** Turns a source that is not itself a token into one: a client's secret, a CI job's identity. Asked anew each time. */
import { AilsdError } from '../../protocol/errors.js';
import { CLI_CLIENT_ID } from '../../protocol/shapes/issuer.js';
import type { CredentialSource } from '../credentials/headless.js';
import type { Access } from './access.js';
import { clientCredentials } from './client-credentials.js';
import { renewAtMs } from './freshness.js';
import { exchangeIdentity, fetchGithubIdentity } from './identity-token.js';
import { connectIssuer } from './issuer.js';
import type { Tokens } from './tokens.js';
import type { AuthWorld } from './world.js';

export type IndirectSource = Exclude<CredentialSource, { kind: 'token' }>;

export interface SourceTokens {
  readonly tokens: Tokens;
  readonly clientId: string;
}

export async function accessFromSource(
  world: AuthWorld,
  source: IndirectSource,
  signal: AbortSignal | undefined,
): Promise<Access> {
  const { tokens } = await tokensFromSource(world, source, [], signal);
  const { accessToken, accessExpiresAtMs, scopes } = tokens;
  return {
    token: accessToken,
    expiresAtMs: accessExpiresAtMs,
    renewAtMs: renewAtMs(tokens),
    scopes,
    origin: { kind: 'variable', variable: source.variable },
  };
}

/** No `scopes`: whatever the issuer's entry for the client or the job allows. What goes wrong names the variable. */
export async function tokensFromSource(
  world: AuthWorld,
  source: IndirectSource,
  scopes: readonly string[],
  signal: AbortSignal | undefined,
): Promise<SourceTokens> {
  try {
    return await ask(world, source, scopes, signal);
  } catch (error) {
    if (!(error instanceof AilsdError) || error.row.exit !== REFUSED_EXIT) throw error;
    const { code, message, hint, details, cause } = error;
    const { variable } = source;
    const named = message.includes(variable) ? message : `${variable}: ${message}`;
    throw new AilsdError(code, named, { cause, hint, details: { ...details, variable } });
  }
}

const REFUSED_EXIT = 4;

async function ask(
  world: AuthWorld,
  source: IndirectSource,
  scopes: readonly string[],
  signal: AbortSignal | undefined,
): Promise<SourceTokens> {
  const url = world.url();
  const http = await world.http();
  const { clock } = world;
  if (source.kind === 'client-secret') {
    const { clientId } = source;
    const clientSecret = source.read();
    const issuer = await connectIssuer({ url, clientId, clientSecret, http, clock, signal });
    return { clientId, tokens: await clientCredentials(issuer, scopes, signal) };
  }
  const identity =
    source.kind === 'identity-token'
      ? source.read()
      : await fetchGithubIdentity(http, source, url, signal);
  const clientId = CLI_CLIENT_ID;
  const issuer = await connectIssuer({ url, clientId, http, clock, signal });
  return { clientId, tokens: await exchangeIdentity(issuer, identity, scopes, signal) };
}
