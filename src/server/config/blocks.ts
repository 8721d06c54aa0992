/** The settings of the broker and of the `local` provider: blocks of `server.json`, each with variables of its own. */
import { resolve } from 'node:path';
import * as z from 'zod/mini';

export interface BrokerConfig {
  /** How long a sandbox is kept that nothing uses. */
  readonly idleTimeoutSeconds: number;
  /** How long a sandbox is kept whatever happens. */
  readonly hardTtlSeconds: number;
  readonly sweepSeconds: number;
  /** How long a provider may take to make or start a sandbox. */
  readonly provisionSeconds: number;
  /** Of one caller, over all its logins; 0: no limit. */
  readonly requestsPerMinute: number;
  /** Of one address, whoever calls from there; 0: no limit. */
  readonly addressRequestsPerMinute: number;
}

export interface LocalConfig {
  /** Where the sandboxes of the `local` provider are. */
  readonly dir: string;
  /** `auto`: the best that works here, or none of it starts. */
  readonly isolation: 'auto' | 'namespaces' | 'none';
  /** Of one sandbox. */
  readonly memoryBytes: number;
  readonly pids: number;
}

const seconds = (min: number, max: number) => z.int().check(z.minimum(min), z.maximum(max));
const rate = z.int().check(z.minimum(0), z.maximum(10_000_000));

const BROKER = {
  idle_timeout_seconds: seconds(1, 86_400),
  hard_ttl_seconds: seconds(1, 2_592_000),
  sweep_seconds: seconds(1, 60),
  provision_seconds: seconds(1, 600),
  requests_per_minute: rate,
  address_requests_per_minute: rate,
};

const LOCAL_NUMBERS = {
  memory_bytes: z.int().check(z.minimum(16 * 1024 * 1024), z.maximum(2 ** 50)),
  pids: z.int().check(z.minimum(8), z.maximum(1_000_000)),
};

const LOCAL_TEXTS = {
  dir: z.string().check(z.minLength(1), z.maxLength(2048)),
  isolation: z.enum(['auto', 'namespaces', 'none']),
};

export const brokerBlock = z.partial(z.strictObject(BROKER));
export const localBlock = z.partial(z.strictObject({ ...LOCAL_TEXTS, ...LOCAL_NUMBERS }));

export type BrokerBlock = z.output<typeof brokerBlock>;
export type LocalBlock = z.output<typeof localBlock>;

/** As variables have them: digits. */
export const brokerVariables = z.partial(
  z.object({
    idle_timeout_seconds: digits(BROKER.idle_timeout_seconds),
    hard_ttl_seconds: digits(BROKER.hard_ttl_seconds),
    sweep_seconds: digits(BROKER.sweep_seconds),
    provision_seconds: digits(BROKER.provision_seconds),
    requests_per_minute: digits(BROKER.requests_per_minute),
    address_requests_per_minute: digits(BROKER.address_requests_per_minute),
  }),
);
export const localVariables = z.partial(
  z.object({
    ...LOCAL_TEXTS,
    memory_bytes: digits(LOCAL_NUMBERS.memory_bytes),
    pids: digits(LOCAL_NUMBERS.pids),
  }),
);

export const BLOCK_VARIABLES = {
  broker: Object.keys(brokerVariables.shape),
  local: Object.keys(localVariables.shape),
} as const;

export function toBrokerConfig(given: BrokerBlock): BrokerConfig {
  return {
    idleTimeoutSeconds: given.idle_timeout_seconds ?? 900,
    hardTtlSeconds: given.hard_ttl_seconds ?? 28_800,
    sweepSeconds: given.sweep_seconds ?? 5,
    provisionSeconds: given.provision_seconds ?? 60,
    requestsPerMinute: given.requests_per_minute ?? 6_000,
    addressRequestsPerMinute: given.address_requests_per_minute ?? 60_000,
  };
}

export function toLocalConfig(folder: string, given: LocalBlock): LocalConfig {
  return {
    dir: resolve(folder, given.dir ?? 'local'),
    isolation: given.isolation ?? 'auto',
    memoryBytes: given.memory_bytes ?? 2 * 1024 ** 3,
    pids: given.pids ?? 1_024,
  };
}

/** A number as variables have it. */
export function digits<S extends z.ZodMiniType<number, number>>(number: S) {
  const text = z.string().check(z.regex(/^\d{1,16}$/, 'a whole number'));
  return z.pipe(text, z.pipe(z.transform(Number), number));
}
