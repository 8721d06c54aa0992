/** Which proxy, if any, stands between us and an address, by the variables everybody uses. Pure, but for numeric ranges. */
import { AilsdError } from '../../protocol/errors.js';

export interface ProxySettings {
  /** For https addresses: HTTPS_PROXY. */
  readonly https?: string | undefined;
  /** For http addresses: HTTP_PROXY. */
  readonly http?: string | undefined;
  /** Who is reached without one: NO_PROXY. */
  readonly none?: string | undefined;
}

/** The small spelling wins where both are set, as with curl. */
export function proxySettings(variable: (name: string) => string | undefined): ProxySettings {
  const either = (name: string): string | undefined =>
    variable(name) || variable(name.toUpperCase()) || undefined;
  return { https: either('https_proxy'), http: either('http_proxy'), none: either('no_proxy') };
}

/** This very machine is never reached through a proxy: to a proxy, `localhost` is itself. */
export async function proxyFor(url: URL, settings: ProxySettings): Promise<URL | undefined> {
  const secure = url.protocol === 'https:';
  const value = secure ? settings.https : settings.http;
  if (value === undefined) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const port = url.port || (secure ? '443' : '80');
  if (isLoopback(host)) return undefined;
  if (await isExcepted(host, port, settings.none ?? '')) return undefined;
  return parseProxy(value, secure ? 'HTTPS_PROXY' : 'HTTP_PROXY');
}

/** The proxy answered, and not with a tunnel. */
export class ProxyRefused extends Error {
  readonly proxy: string;
  readonly status: number;

  constructor(proxy: string, status: number) {
    super(
      status === 407
        ? `the proxy ${proxy} wants a user name and password`
        : `the proxy ${proxy} answered ${status}`,
    );
    this.proxy = proxy;
    this.status = status;
  }
}

function parseProxy(value: string, variable: string): URL {
  // Without a scheme it is an http proxy, whatever is asked through it.
  const text = value.includes('://') ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const known = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url !== undefined && known && isDecodable(url.username + url.password)) return url;
  // The value is not repeated: it may hold a password.
  throw new AilsdError('CONFIG_INVALID', `${variable} is not the address of an http proxy`, {
    hint: `set ${variable} to something like http://proxy.example.com:3128`,
    details: { variable },
  });
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function isLoopback(host: string): boolean {
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host === '::1' ||
    /^127(\.\d+){3}$/.test(host)
  );
}

/** NO_PROXY: names with all below them, addresses, ranges like 10.0.0.0/8, each with or without a port, or `*`. */
async function isExcepted(host: string, port: string, list: string): Promise<boolean> {
  for (const entry of list.toLowerCase().split(/[\s,]+/)) {
    if (entry === '') continue;
    if (entry === '*') return true;
    if (/\/\d+$/.test(entry)) {
      if (await isInRange(host, entry)) return true;
      continue;
    }
    const { name, port: itsPort } = splitPort(entry);
    if (itsPort !== undefined && itsPort !== port) continue;
    const bare = name.replace(/^\*?\./, '');
    if (bare !== '' && (host === bare || host.endsWith(`.${bare}`))) return true;
  }
  return false;
}

/** `[::1]:80` has a port; a bare `::1` has none, though its last group looks like one. */
function splitPort(entry: string): { readonly name: string; readonly port: string | undefined } {
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry);
  if (bracketed !== null) return { name: bracketed[1] ?? '', port: bracketed[2] };
  const [name = '', port, more] = entry.split(':');
  return more === undefined ? { name, port } : { name: entry, port: undefined };
}

async function isInRange(host: string, range: string): Promise<boolean> {
  const { BlockList, isIP } = await import('node:net');
  const kind = isIP(host);
  const [address = '', bits] = range.split('/');
  if (kind === 0 || isIP(address) !== kind) return false;
  const family = kind === 4 ? 'ipv4' : 'ipv6';
  if (Number(bits) > (kind === 4 ? 32 : 128)) return false;
  const ranges = new BlockList();
  ranges.addSubnet(address, Number(bits), family);
  return ranges.check(host, family);
}
