import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  IDEMPOTENCY_KEY_PATTERN,
  IDEMPOTENCY_SECONDS,
  PREFER_WAIT_MAX_SECONDS,
  parsePreferWait,
  REQUEST_ID_PATTERN,
} from '../../src/protocol/headers.js';

describe('headers', () => {
  it('Prefer: wait=N waits N seconds, and a minute at most', () => {
    expect(parsePreferWait('wait=10')).toBe(10);
    expect(parsePreferWait('respond-async, wait=10')).toBe(10);
    expect(parsePreferWait('Wait="10"; x=y')).toBe(10);
    expect(parsePreferWait('wait=61')).toBe(PREFER_WAIT_MAX_SECONDS);
    expect(parsePreferWait('wait=1e9')).toBe(60);
    expect(parsePreferWait('wait=1e999')).toBe(60);
    expect(PREFER_WAIT_MAX_SECONDS).toBe(60);
  });

  it('a preference that cannot be read is none', () => {
    for (const header of [
      undefined,
      '',
      'wait',
      'wait=',
      'wait=-1',
      'wait=x',
      'await=5',
      'wait=5x',
    ])
      expect(parsePreferWait(header), header).toBe(0);
    fc.assert(
      fc.property(fc.string(), (header) => {
        const seconds = parsePreferWait(header);
        return Number.isInteger(seconds) && seconds >= 0 && seconds <= 60;
      }),
    );
  });

  it('an idempotency key is 1 to 255 visible characters, kept for a day', () => {
    expect(IDEMPOTENCY_SECONDS).toBe(86_400);
    for (const key of ['a', crypto.randomUUID(), 'x'.repeat(255)])
      expect(key).toMatch(IDEMPOTENCY_KEY_PATTERN);
    for (const key of ['', 'x'.repeat(256), 'a b', 'a\n', 'a\0', 'é'])
      expect(key).not.toMatch(IDEMPOTENCY_KEY_PATTERN);
  });

  it('a request id is short and plain, or it is replaced', () => {
    for (const id of ['req_123', crypto.randomUUID()]) expect(id).toMatch(REQUEST_ID_PATTERN);
    for (const id of ['', 'x'.repeat(10_240), 'a\n', 'a b', '-a'])
      expect(id).not.toMatch(REQUEST_ID_PATTERN);
  });
});
