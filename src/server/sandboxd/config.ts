/** What the daemon is told, as one JSON document on its standard input. Nothing of it is secret: keys come by file. */
import * as z from 'zod/mini';
import { parse } from '../../protocol/parse.js';
import { sandboxId } from '../../protocol/shapes/fields.js';

const MIB = 1024 * 1024;

const bytes = (min: number, max: number) => z.int().check(z.minimum(min), z.maximum(max));
const text = (max: number) => z.string().check(z.minLength(1), z.maxLength(max));

const document = z.object({
  /** The folder of the sandboxes; with `sandbox`, that one's own. */
  dir: text(4096),
  /** `HOST:PORT`; port 0 is any that is free. */
  listen: z._default(text(256), '127.0.0.1:0'),
  /** Serves this one alone, at the root of the address. */
  sandbox: z.optional(sandboxId),
  isolation: z._default(z.enum(['auto', 'namespaces', 'none']), 'auto'),
  /** How callers reach us, where that is not the address we listen on. */
  url: z.optional(text(2048)),
  /** Browser pages of these may connect. */
  origins: z._default(z.array(text(256)).check(z.maxLength(64)), []),
  trusted_proxies: z._default(z.array(text(64)).check(z.maxLength(64)), []),
  /** Output kept of each shell. */
  ring_bytes: z._default(bytes(256 * 1024, 64 * MIB), 4 * MIB),
  recording: z._default(z.boolean(), true),
  log_level: z._default(z.enum(['debug', 'info', 'warn', 'error']), 'info'),
});

export interface DaemonConfig {
  readonly dir: string;
  readonly host: string;
  readonly port: number;
  readonly sandbox: z.output<typeof sandboxId> | undefined;
  readonly isolation: 'auto' | 'namespaces' | 'none';
  readonly url: string | undefined;
  readonly origins: readonly string[];
  readonly trustedProxies: readonly string[];
  readonly ringBytes: number;
  readonly isRecording: boolean;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
}

/** Throws CONFIG_INVALID, naming the field. */
export function parseDaemonConfig(value: unknown): DaemonConfig {
  const parsed = parse(document, value, 'CONFIG_INVALID', 'the daemon: ');
  if (!parsed.ok) throw parsed.error;
  const { dir, listen, sandbox, isolation, url, origins } = parsed.value;
  const {
    trusted_proxies: trustedProxies,
    ring_bytes: ringBytes,
    log_level: logLevel,
  } = parsed.value;
  const at = listen.lastIndexOf(':');
  const port = Number(listen.slice(at + 1));
  const host = listen.slice(0, Math.max(at, 0)).replace(/^\[(.*)\]$/, '$1');
  return {
    dir,
    host: host === '' ? '127.0.0.1' : host,
    port: Number.isInteger(port) && port >= 0 && port <= 65_535 ? port : 0,
    sandbox,
    isolation,
    url,
    origins,
    trustedProxies,
    ringBytes,
    isRecording: parsed.value.recording,
    logLevel,
  };
}
