/** Where a request really comes from. `X-Forwarded-*` is believed only from proxies the operator named. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

export interface Origin {
  readonly address: string;
  readonly scheme: 'http' | 'https';
}

export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #isEmpty: boolean;

  /** Addresses or networks, such as `10.0.0.0/8` and `::1`; each has been checked by `isNetwork`. */
  constructor(networks: readonly string[]) {
    this.#isEmpty = networks.length === 0;
    for (const network of networks) {
      const [address = '', prefix] = network.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (prefix === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(prefix), family);
    }
  }

  trusts(address: string): boolean {
    if (this.#isEmpty) return false;
    const family = isIP(address);
    return family !== 0 && this.#list.check(address, family === 6 ? 'ipv6' : 'ipv4');
  }
}

/** Whether it is an address, or one with a prefix length. */
export function isNetwork(text: string): boolean {
  const [address = '', prefix, more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more !== undefined) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 6 ? 128 : 32);
}

/**
 * Finds the caller behind trusted proxies, and leaves in the headers only what was found: whoever reads
 * `X-Forwarded-For` further down may believe it.
 */
export function settleOrigin(request: IncomingMessage, proxies: TrustedProxies): Origin {
  const peer = plainAddress(request.socket.remoteAddress ?? '');
  const { headers } = request;
  const chain = textOf(headers['x-forwarded-for']);
  const proto = textOf(headers['x-forwarded-proto']);
  for (const name of FORWARDED) if (headers[name] !== undefined) delete headers[name];
  if (!proxies.trusts(peer)) return { address: peer, scheme: 'http' };
  const address = nearestStranger(chain, proxies) ?? peer;
  const scheme = proto?.trim().toLowerCase() === 'https' ? 'https' : 'http';
  headers['x-forwarded-for'] = address;
  headers['x-forwarded-proto'] = scheme;
  return { address, scheme };
}

const FORWARDED = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
] as const;

/** The last address of the chain that no trusted proxy has; whatever stands before it, anybody may have written. */
function nearestStranger(chain: string | undefined, proxies: TrustedProxies): string | undefined {
  const hops = chain?.split(',', MOST_HOPS + 1) ?? [];
  if (hops.length > MOST_HOPS) return undefined;
  for (const hop of hops.reverse()) {
    const address = plainAddress(hop.trim());
    if (isIP(address) === 0) return undefined;
    if (!proxies.trusts(address)) return address;
  }
  return undefined;
}

const MOST_HOPS = 32;

/** An IPv4 peer of a socket that listens on both families is written as IPv6. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}
