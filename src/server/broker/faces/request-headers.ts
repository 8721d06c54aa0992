/** The two headers of a negotiation: how long to wait for a start, and the key that makes repeating it harmless. */
import { createHash } from 'node:crypto';
import { AilsdError } from '../../../protocol/errors.js';
import { IDEMPOTENCY_KEY_PATTERN, parsePreferWait } from '../../../protocol/headers.js';
import type { RouteName } from '../../../protocol/routes.js';
import type { Call } from '../../http/call.js';
import type { IdempotencyKey } from '../../store/idempotency.js';
import { type Caller, callerKey } from '../sessions/caller.js';

export function callerOf({ principal, exchange }: Call): Caller {
  return { principal, requestId: exchange.requestId };
}

export function waitMsOf({ exchange }: Call): number {
  const prefer = exchange.request.headers['prefer'];
  return parsePreferWait(Array.isArray(prefer) ? prefer.join(',') : prefer) * 1000;
}

/** `asked`: all of the request that means something, by which a repetition is known from another request. */
export function idempotencyKeyOf(
  call: Call,
  route: RouteName,
  asked: object,
): IdempotencyKey | undefined {
  const key = call.exchange.request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  // Node joins repeated headers of this name with a comma and a space, which no key has.
  if (typeof key !== 'string' || !IDEMPOTENCY_KEY_PATTERN.test(key)) {
    throw new AilsdError('INVALID_REQUEST', 'the Idempotency-Key is not 1 to 255 visible ASCII', {
      details: { field: 'Idempotency-Key' },
    });
  }
  const requestHash = createHash('sha256').update(toCanonicalJson(asked)).digest('hex');
  return { caller: callerKey(call.principal), route, key, requestHash };
}

/** The order in which fields were sent does not make it another request. */
function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
