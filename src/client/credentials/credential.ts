/** A login as it is kept: the tokens, whose they are and what they may do. Written and read here alone, without a schema library. */
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';

/** What tells logins apart: who issued, to which program, for whom. */
export interface CredentialKey {
  readonly issuer: string;
  readonly clientId: string;
  /** The issuer's name for the account: `sub`. */
  readonly account: string;
}

export interface Credential extends CredentialKey {
  /** How people know the account. */
  readonly name?: string | undefined;
  readonly tenant?: string | undefined;
  /** What was granted, which may be less than was asked for. */
  readonly scopes: readonly string[];
  /** The threads the login was pinned to when it was approved; absent where it is for all. */
  readonly threads?: readonly string[] | undefined;
  readonly accessToken: Secret;
  /** By this machine's clock, milliseconds since 1970. */
  readonly accessExpiresAtMs: number;
  readonly refreshToken?: Secret | undefined;
  readonly obtainedAtMs: number;
  /** When the login ends however often it is renewed, by this machine's clock; absent where the issuer does not say. */
  readonly loginExpiresAtMs?: number | undefined;
}

/** Bounds on what is kept and on what is taken for a credential when it is read back. */
export const CREDENTIAL_BOUNDS = {
  textCharacters: 2_048,
  tokenCharacters: 16_384,
  listItems: 256,
} as const;

export function keyOf({ issuer, clientId, account }: CredentialKey): CredentialKey {
  return { issuer, clientId, account };
}

export function isSameKey(a: CredentialKey, b: CredentialKey): boolean {
  return a.issuer === b.issuer && a.clientId === b.clientId && a.account === b.account;
}

/** What could not be read back is refused before it takes the place of what can. */
export function assertKeepable(credential: Credential): void {
  if (parseStored(toStored(credential)) !== undefined) return;
  throw new AilsdError('LOGIN_FAILED', 'the issuer gave a login that cannot be kept', {
    internal: 'a field of the credential is empty, of another kind, or out of its bounds',
  });
}

/** As it is stored. Reveals the tokens: only a store may call it. */
export interface StoredCredential {
  readonly issuer: string;
  readonly client_id: string;
  readonly account: string;
  readonly name?: string | undefined;
  readonly tenant?: string | undefined;
  readonly scopes: readonly string[];
  readonly threads?: readonly string[] | undefined;
  readonly access_token: string;
  readonly access_expires_at: number;
  readonly refresh_token?: string | undefined;
  readonly obtained_at: number;
  readonly login_expires_at?: number | undefined;
}

export function toStored(credential: Credential): StoredCredential {
  return {
    issuer: credential.issuer,
    client_id: credential.clientId,
    account: credential.account,
    name: credential.name,
    tenant: credential.tenant,
    scopes: credential.scopes,
    threads: credential.threads,
    access_token: credential.accessToken.reveal(),
    access_expires_at: credential.accessExpiresAtMs,
    refresh_token: credential.refreshToken?.reveal(),
    obtained_at: credential.obtainedAtMs,
    login_expires_at: credential.loginExpiresAtMs,
  };
}

/** `undefined` for anything that is not a whole credential. */
export function parseStored(value: unknown): Credential | undefined {
  if (!isRecord(value)) return undefined;
  const issuer = text(value['issuer']);
  const clientId = text(value['client_id']);
  const account = text(value['account']);
  const scopes = list(value['scopes']);
  const accessToken = token(value['access_token']);
  const accessExpiresAtMs = time(value['access_expires_at']);
  const obtainedAtMs = time(value['obtained_at']);
  if (issuer === undefined || clientId === undefined || account === undefined) return undefined;
  if (scopes === undefined || accessToken === undefined) return undefined;
  if (accessExpiresAtMs === undefined || obtainedAtMs === undefined) return undefined;
  const name = optional(value['name'], text);
  const tenant = optional(value['tenant'], text);
  const threads = optional(value['threads'], list);
  const refreshToken = optional(value['refresh_token'], token);
  const loginExpiresAtMs = optional(value['login_expires_at'], time);
  if (name === BAD || tenant === BAD || threads === BAD || refreshToken === BAD) return undefined;
  if (loginExpiresAtMs === BAD) return undefined;
  return {
    issuer,
    clientId,
    account,
    scopes,
    accessToken,
    accessExpiresAtMs,
    obtainedAtMs,
    ...(name === undefined ? {} : { name }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(threads === undefined ? {} : { threads }),
    ...(refreshToken === undefined ? {} : { refreshToken }),
    ...(loginExpiresAtMs === undefined ? {} : { loginExpiresAtMs }),
  };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const BAD = Symbol('there, and not what it should be');

/** Leaving a field out is fine; filling it with something else is not. */
function optional<T>(
  value: unknown,
  parse: (value: unknown) => T | undefined,
): T | undefined | typeof BAD {
  return value === undefined ? undefined : (parse(value) ?? BAD);
}

function text(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return value.length <= CREDENTIAL_BOUNDS.textCharacters ? value : undefined;
}

function token(value: unknown): Secret | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return value.length <= CREDENTIAL_BOUNDS.tokenCharacters ? new Secret(value) : undefined;
}

function list(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value) || value.length > CREDENTIAL_BOUNDS.listItems) return undefined;
  const items = value.map(text).filter((item) => item !== undefined);
  return items.length === value.length ? items : undefined;
}

function time(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
