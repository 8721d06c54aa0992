/** Where the relay may connect to: the place that was registered for a sandbox, and no name that leads somewhere inward. */
import { lookup as lookupName } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { AilsdError } from '../../../protocol/errors.js';
import { underBaseUrl } from '../../../protocol/routes.js';

/** A sandbox's base URL, taken apart. It comes from the store, never from a request. */
export interface Place {
  readonly protocol: 'http:' | 'https:';
  readonly hostname: string;
  readonly port: number;
  /** Without a slash at its end. */
  readonly basePath: string;
}

export function placeOf(baseUrl: string): Place {
  const url = underBaseUrl(baseUrl.replace(/^ws/, 'http'), '');
  const { protocol, hostname, port, pathname } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') throw unreachable('another scheme');
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && isNever(host)) throw unreachable('an address no sandbox has');
  return {
    protocol,
    hostname: host,
    port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    basePath: pathname.replace(/\/+$/, ''),
  };
}

/**
 * For names alone: one that leads to this machine or to the cloud's own services was not registered as that, whatever
 * its owner has made of it since.
 */
export function guardedLookup(resolve: LookupFunction = lookupName): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: false }, (error, address, family) => {
      if (error !== null) return done(error, '', 0);
      const found = typeof address === 'string' ? address : (address[0]?.address ?? '');
      if (hostname !== 'localhost' && (isLoopback(found) || isNever(found)))
        return done(unreachable('its name leads inward'), '', 0);
      const kind = family ?? isIP(found);
      return options.all === true
        ? done(null, [{ address: found, family: kind }])
        : done(null, found, kind);
    });
  };
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Link-local (where clouds serve credentials), unspecified, multicast and broadcast. */
const NEVER = new BlockList();
NEVER.addSubnet('169.254.0.0', 16, 'ipv4');
NEVER.addSubnet('0.0.0.0', 8, 'ipv4');
NEVER.addSubnet('224.0.0.0', 3, 'ipv4');
NEVER.addSubnet('fe80::', 10, 'ipv6');
NEVER.addSubnet('ff00::', 8, 'ipv6');
NEVER.addAddress('::', 'ipv6');
NEVER.addAddress('fd00:ec2::254', 'ipv6');

function isLoopback(address: string): boolean {
  return isIn(LOOPBACK, address);
}

function isNever(address: string): boolean {
  return isIn(NEVER, address);
}

/** IPv4 written as IPv6 is looked at as IPv4, which `BlockList` does by itself. */
function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

export function unreachable(internal: string, cause?: unknown): AilsdError {
  return new AilsdError('BACKEND_UNAVAILABLE', 'the sandbox cannot be reached', {
    internal,
    ...(cause !== undefined && { cause }),
    details: { retry_after_ms: 1_000 },
  });
}
