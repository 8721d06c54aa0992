/** Where a request comes from, as far as it can be told: for the eyes of an approver, and for counting. */
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv6 } from 'node:net';

/** Behind a trusted proxy `server/http` has left in the header only the caller it found; else the header is anybody's. */
export function addressOf(request: IncomingMessage, trustProxy: boolean): string {
  const forwarded = request.headers['x-forwarded-for'];
  // The last hop is what the trusted peer itself has seen.
  const nearest = typeof forwarded === 'string' ? forwarded.split(',').at(-1)?.trim() : undefined;
  if (trustProxy && nearest !== undefined && isIP(nearest) !== 0) return nearest;
  return (request.socket.remoteAddress ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '');
}

/** What counts as one address: of IPv6 everybody has 2^64. */
export function addressBucket(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? [];
  const left = head.split(':').filter((group) => group !== '');
  const right = tail?.split(':').filter((group) => group !== '') ?? [];
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  const groups = [...left, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...right];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

const MAX_USER_AGENT = 256;

export function userAgentOf({ headers }: IncomingMessage): string {
  return (headers['user-agent'] ?? '').slice(0, MAX_USER_AGENT);
}

/** What a machine says it is called; `undefined` for what is no name. Nobody has checked it. */
export function machineNameOf(given: unknown): string | undefined {
  return typeof given === 'string' && MACHINE_NAME.test(given) ? given : undefined;
}

/** Of ASCII alone: a name that looks like another, or turns the text around it, is none. */
const MACHINE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
