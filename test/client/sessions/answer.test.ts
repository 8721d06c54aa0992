import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseNegotiated } from '../../../src/client/sessions/answer.js';
import { NEGOTIATE_PATH } from '../../../src/client/sessions/negotiate.js';
import { parse } from '../../../src/protocol/parse.js';
import { ROUTES } from '../../../src/protocol/routes.js';
import { bindingAnswer, sessionAnswer } from '../../../src/protocol/shapes/sessions.js';

const ours = {
  session_id: 'ssn_123',
  thread_id: 'thr_123',
  sandbox: {
    id: 'sb_123',
    provider: 'langsmith',
    http_base_url: 'https://dp.example.com/v1',
    ws_base_url: 'wss://dp.example.com/v1',
  },
  token: 'opaque_or_jwt_token',
  expires_at: '2026-02-27T20:20:00Z',
};

const full = {
  binding: {
    id: 'bind_789',
    scope: { type: 'thread', id: 'thr_123' },
    sandbox_id: 'sb_123',
    provider: 'langsmith',
    state: 'active',
    lease_expires_at: '2026-02-27T21:00:00Z',
  },
  dataplane: {
    http_base_url: 'https://dp.example.com/v1',
    ws_base_url: 'wss://dp.example.com/v1',
  },
  credentials: {
    token_type: 'Bearer',
    access_token: 'short_lived_token',
    expires_at: '2026-02-27T20:20:00Z',
    granted_capabilities: ['fs_read', 'fs_write', 'shell'],
  },
  policy: { idle_timeout_seconds: 900, hard_ttl_seconds: 28_800 },
};

const both = { ...ours, ...full, refresh_before: '2026-02-27T20:15:00Z', adjustments: null };

describe('the answer to a negotiation', () => {
  it("is read in S2's MVP form, in its full form, and as both at once", () => {
    expect(parseNegotiated(ours)).toMatchObject({
      sessionId: 'ssn_123',
      sandboxId: 'sb_123',
      httpUrl: 'https://dp.example.com/v1',
      capabilities: undefined,
    });
    expect(parseNegotiated(full)).toMatchObject({
      sessionId: 'bind_789',
      threadId: 'thr_123',
      sandboxId: 'sb_123',
      state: 'active',
      capabilities: ['fs:ro', 'fs:rw', 'shell'],
    });
    const { fresh, policy } = parseNegotiated(both);
    expect(fresh.refreshBeforeMs).toBe(Date.parse('2026-02-27T20:15:00Z'));
    expect(policy).toEqual({ idleTimeoutSeconds: 900, hardTtlSeconds: 28_800 });
    expect(fresh.token.reveal()).toBe('opaque_or_jwt_token');
  });

  it('one field wrong: refused by name where the schema refuses it, and the value is not repeated', () => {
    const wrong = [
      'secret value',
      7,
      {},
      [],
      true,
      '../x',
      'http://a b/',
      '',
      'https://[',
      'wss://ä',
    ];
    const paths = [...pathsOf(ours), ...pathsOf(both), ...pathsOf(full)];
    fc.assert(
      fc.property(
        fc.constantFrom(ours, both, full),
        fc.constantFrom(...paths),
        fc.constantFrom<unknown>(...wrong),
        (answer, path, value) => {
          const changed = withValue(structuredClone(answer), path, value);
          const schema = 'session_id' in changed ? sessionAnswer : bindingAnswer;
          const accepted = parse(schema, changed, 'PROTOCOL_MISMATCH', '').ok;
          let read = true;
          try {
            parseNegotiated(changed);
          } catch (error) {
            read = false;
            expect(error).toMatchObject({ code: 'PROTOCOL_MISMATCH' });
            expect(String(error)).not.toContain('secret value');
          }
          // What is read is what the schema takes; of what this client does not use it need not mind the form.
          if (accepted) expect({ path, value, read }).toEqual({ path, value, read: true });
          if (read && USED.test(path.join('.'))) {
            expect({ path, value, accepted }).toEqual({ path, value, accepted: true });
          }
        },
      ),
      { numRuns: 600 },
    );
  });

  it('has its path from the table of routes', () => {
    expect(NEGOTIATE_PATH).toBe(ROUTES.negotiateSession.path);
    expect(`${NEGOTIATE_PATH}/{session_id}/refresh-token`).toBe(ROUTES.refreshBindingToken.path);
    expect(`${NEGOTIATE_PATH}/{session_id}/heartbeat`).toBe(ROUTES.heartbeatSession.path);
  });
});

/** What a client acts on, of the answer that is ours. */
const USED =
  /^(session_id|thread_id|token|expires_at|sandbox\.(id|provider|http_base_url|ws_base_url))$/;

function pathsOf(value: object, before: readonly string[] = []): readonly string[][] {
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = [...before, key];
    const isObject = typeof inner === 'object' && inner !== null && !Array.isArray(inner);
    return isObject ? [path, ...pathsOf(inner, path)] : [path];
  });
}

function withValue(root: object, path: readonly string[], value: unknown): object {
  let at: unknown = root;
  for (const key of path.slice(0, -1)) {
    if (typeof at !== 'object' || at === null) return root;
    at = Reflect.get(at, key);
  }
  if (typeof at === 'object' && at !== null) Reflect.set(at, path.at(-1) ?? '', value);
  return root;
}
