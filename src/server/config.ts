/** How a server is set up: `server.json` in its data folder, over it the variables `AILSD_SERVER_*`, over those what it is told. */
import { resolve } from 'node:path';
import * as z from 'zod/mini';
import { Secret } from '../base/secret.js';
import { DEFAULT_TENANT } from '../protocol/claims.js';
import { AilsdError } from '../protocol/errors.js';
import { parse } from '../protocol/parse.js';
import { isScope, LOGIN_SCOPES, type Scope } from '../protocol/scopes.js';
import { label, name } from '../protocol/shapes/fields.js';
import {
  BLOCK_VARIABLES,
  type BrokerConfig,
  brokerBlock,
  brokerVariables,
  digits,
  type LocalConfig,
  localBlock,
  localVariables,
  toBrokerConfig,
  toLocalConfig,
} from './config/blocks.js';
import { isNetwork } from './http/forwarded.js';

export interface ServerConfig {
  /** Where callers reach it, which is also its name as an issuer; absent: where it listens, if that is this machine alone. */
  readonly url: string | undefined;
  readonly listen: Listen;
  /** What access tokens must be for; absent: the URL. */
  readonly audience: string | undefined;
  /** `postgres://…`, or a path. */
  readonly store: string;
  readonly trustedProxies: readonly string[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  readonly deviceCodeSeconds: number | undefined;
  /** How long it goes on serving after it was told to end, while `/readyz` says so already. */
  readonly drainSeconds: number;
  readonly upstream: Upstream | undefined;
  /** What invites are signed with, where others make them too; absent: one of our own. */
  readonly sandboxAuthSecret: Secret | undefined;
  readonly broker: BrokerConfig;
  readonly local: LocalConfig;
}

export interface Listen {
  readonly host: string;
  readonly port: number;
}

/** `listen` and `url` of a command line win over file and variables. */
export interface ConfigSources {
  readonly folder: string;
  /** The parsed `server.json`. */
  readonly file: unknown;
  readonly variables: Variables;
  readonly said?: { readonly listen?: string | undefined; readonly url?: string | undefined };
}

export type Variables = Readonly<Record<string, string | undefined>>;

/** The one place of the server that reads the process's own. */
export function processVariables(): Variables {
  return process.env;
}

export function readConfig({ folder, file, variables, said }: ConfigSources): ServerConfig {
  checkNames(file);
  const fromFile = checked(settings, file, 'server.json: ');
  const fromVariables = checked(variableSettings, pick(variables), 'the environment: ');
  const brokerOfVariables = checked(
    brokerVariables,
    pickBlock(variables, 'broker'),
    'the environment: broker_',
  );
  const localOfVariables = checked(
    localVariables,
    pickBlock(variables, 'local'),
    'the environment: local_',
  );
  const fromCommand = checked(commandSettings, said ?? {}, 'the command line: ');
  const merged = { ...fromFile, ...defined(fromVariables), ...defined(fromCommand) };
  return {
    url: merged.url,
    listen: merged.listen ?? DEFAULT_LISTEN,
    audience: merged.audience,
    store: storeUrl(folder, merged.store),
    trustedProxies: merged.trusted_proxies ?? [],
    logLevel: merged.log_level ?? 'info',
    deviceCodeSeconds: merged.device_code_seconds,
    drainSeconds: merged.drain_seconds ?? 0,
    upstream: merged.upstream === undefined ? undefined : toUpstream(merged.upstream),
    sandboxAuthSecret: toAuthSecret(variables['SANDBOX_AUTH_SECRET']),
    broker: toBrokerConfig({ ...fromFile.broker, ...defined(brokerOfVariables) }),
    local: toLocalConfig(folder, { ...fromFile.local, ...defined(localOfVariables) }),
  };
}

export const CONFIG_FILE = 'server.json';
export const DEFAULT_STORE = 'store.db';
const DEFAULT_LISTEN: Listen = { host: '127.0.0.1', port: 8484 };

/** https, or http on this very machine: tokens travel in it. Without a path, which issuers can't have here. */
const serverUrl = z.string().check(
  z.maxLength(2048),
  z.refine(isServerUrl, {
    error: 'an https URL (http for this machine alone) without user, path, query and fragment',
  }),
);

const listen = z.pipe(
  z.string().check(
    z.maxLength(300),
    z.refine((text) => parseListen(text) !== undefined, {
      error: 'HOST:PORT such as 127.0.0.1:8484',
    }),
  ),
  z.transform((text: string) => parseListen(text) ?? DEFAULT_LISTEN),
);

const network = z
  .string()
  .check(
    z.maxLength(64),
    z.refine(isNetwork, { error: 'an address or a network such as 10.0.0.0/8' }),
  );

const line = z.string().check(z.minLength(1), z.maxLength(2048));

/** One of the table's, by its exact name. */
export const scope = z.custom<Scope>(
  (value) => typeof value === 'string' && isScope(value),
  'a scope such as read:sandbox',
);

/** A login through the company's own OpenID provider. */
const upstream = z.strictObject({
  issuer: serverOrPathUrl(),
  client_id: line,
  client_secret: z.optional(line),
  /** What people call it. */
  name: label,
  /** What whoever comes for the first time gets; without it, only people with an account made before get in. */
  new_accounts: z.optional(
    z.strictObject({
      tenant: z._default(name, DEFAULT_TENANT),
      scopes: z._default(z.array(scope).check(z.maxLength(16)), [...LOGIN_SCOPES]),
    }),
  ),
});

const fields = {
  url: z.optional(serverUrl),
  audience: z.optional(line),
  store: z.optional(line),
  log_level: z.optional(z.enum(['debug', 'info', 'warn', 'error'])),
};

const deviceCodeSeconds = z.int().check(z.minimum(1), z.maximum(3_600));
const drainSeconds = z.int().check(z.minimum(0), z.maximum(300));
const MOST_PROXIES = 64;

const settings = z.strictObject({
  ...fields,
  listen: z.optional(listen),
  trusted_proxies: z.optional(z.array(network).check(z.maxLength(MOST_PROXIES))),
  device_code_seconds: z.optional(deviceCodeSeconds),
  drain_seconds: z.optional(drainSeconds),
  upstream: z.optional(upstream),
  broker: z.optional(brokerBlock),
  local: z.optional(localBlock),
});

const variableSettings = z.object({
  ...fields,
  listen: z.optional(listen),
  trusted_proxies: z.optional(
    z.pipe(
      z.transform((text: string) => text.split(',').map((one) => one.trim())),
      z.array(network).check(z.maxLength(MOST_PROXIES)),
    ),
  ),
  device_code_seconds: z.optional(digits(deviceCodeSeconds)),
  drain_seconds: z.optional(digits(drainSeconds)),
});

const commandSettings = z.object({ url: z.optional(serverUrl), listen: z.optional(listen) });

const VARIABLE_NAMES = [
  'url',
  'listen',
  'audience',
  'store',
  'trusted_proxies',
  'log_level',
  'device_code_seconds',
  'drain_seconds',
] as const;

function pick(variables: Variables): Record<string, string> {
  const found: Record<string, string> = {};
  for (const one of VARIABLE_NAMES) {
    const value = variables[`AILSD_SERVER_${one.toUpperCase()}`];
    if (value !== undefined && value !== '') found[one] = value;
  }
  return found;
}

function pickBlock(variables: Variables, block: keyof typeof BLOCK_VARIABLES) {
  const found: Record<string, string> = {};
  for (const one of BLOCK_VARIABLES[block]) {
    const value = variables[`AILSD_SERVER_${block}_${one}`.toUpperCase()];
    if (value !== undefined && value !== '') found[one] = value;
  }
  return found;
}

/** A word that is not known is a mistake, most likely in spelling. */
function checkNames(file: unknown): void {
  if (typeof file !== 'object' || file === null) return;
  const field = Object.keys(file).find((key) => !Object.hasOwn(settings.shape, key));
  if (field === undefined) return;
  throw new AilsdError('CONFIG_INVALID', 'server.json: there is no such setting', {
    details: { field: field.slice(0, 64) },
    hint: `settings are ${Object.keys(settings.shape).join(', ')}`,
  });
}

/** `CONFIG_INVALID`, naming source and field; never the value, which may hold a password. */
function checked<S extends z.core.$ZodType>(
  schema: S,
  value: unknown,
  subject: string,
): z.output<S> {
  const parsed = parse(schema, value, 'CONFIG_INVALID', subject);
  if (parsed.ok) return parsed.value;
  const { message, details } = parsed.error;
  throw new AilsdError('CONFIG_INVALID', message, {
    details,
    hint: 'correct it; `ailsd help environment` and docs/operating.md list what there is',
  });
}

function defined<T extends object>(given: T): Partial<T> {
  const kept: Partial<T> = { ...given };
  for (const key in kept) if (kept[key] === undefined) delete kept[key];
  return kept;
}

/** A path is meant from the data folder; any other scheme is for the store to know, or not. */
function storeUrl(folder: string, store = DEFAULT_STORE): string {
  const path = store.replace(/^sqlite:/i, '');
  return /^[a-z][a-z0-9+.-]+:/i.test(path) ? path : resolve(folder, path);
}

export interface Upstream {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret | undefined;
  readonly name: string;
  readonly newAccounts: { readonly tenant: string; readonly scopes: readonly Scope[] } | undefined;
}

function toUpstream(given: z.output<typeof upstream>): Upstream {
  const secret = given.client_secret;
  return {
    issuer: given.issuer,
    clientId: given.client_id,
    clientSecret: secret === undefined ? undefined : new Secret(secret),
    name: given.name,
    newAccounts: given.new_accounts,
  };
}

/** In the environment alone: a file is no place for a secret that others share. */
function toAuthSecret(given: string | undefined): Secret | undefined {
  if (given === undefined || given === '') return undefined;
  if (given.length >= AUTH_SECRET_MIN_CHARACTERS) return new Secret(given);
  throw new AilsdError('CONFIG_INVALID', 'the environment: SANDBOX_AUTH_SECRET is too short', {
    details: { field: 'SANDBOX_AUTH_SECRET' },
    hint: `it has at least ${AUTH_SECRET_MIN_CHARACTERS} random characters`,
  });
}

const AUTH_SECRET_MIN_CHARACTERS = 32;

function parseListen(text: string): Listen | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3] ?? Number.NaN);
  if (match === null || !(port <= 65_535)) return undefined;
  return { host: match[1] ?? (match[2] || '0.0.0.0'), port };
}

export function isLoopbackHost(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/.test(host);
}

function isServerUrl(text: string): boolean {
  if (!/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return false;
  const { protocol, hostname, username, password, pathname, search, hash } = new URL(text);
  if (username + password + search + hash !== '' || pathname !== '/' || text.endsWith('/'))
    return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/** Another's issuer may have a path, and on this machine it may speak http. */
function serverOrPathUrl() {
  return z.string().check(
    z.maxLength(2048),
    z.refine(
      (text) => {
        if (!URL.canParse(text)) return false;
        const { protocol, hostname, username, search, hash } = new URL(text);
        if (username + search + hash !== '') return false;
        return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
      },
      { error: 'an https URL (http for this machine alone) without user, query and fragment' },
    ),
  );
}
