import * as fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod/mini';
import { type ShapeName, shape } from '../../src/protocol/components.js';
import type { SandboxId, SessionId } from '../../src/protocol/ids.js';
import { parseRequest } from '../../src/protocol/parse.js';
import type { WorkloadTrust } from '../../src/protocol/shapes/admin.js';
import { parseBootstrap } from '../../src/protocol/shapes/bootstrap.js';
import type { PageQuery } from '../../src/protocol/shapes/envelope.js';
import { httpBaseUrl, maybe, timestamp, wsBaseUrl } from '../../src/protocol/shapes/fields.js';
import { isWorkspacePath } from '../../src/protocol/shapes/files.js';
import { deviceCodeAnswer, pollIntervalSeconds } from '../../src/protocol/shapes/issuer.js';
import {
  faceOf,
  type NegotiateRequest,
  negotiateRequest,
  type SessionAnswer,
} from '../../src/protocol/shapes/sessions.js';
import { proves } from '../requirements.js';

/** The bad field's name, or `fine`. */
function verdict(name: ShapeName, value: unknown): unknown {
  const parsed = parseRequest(shape(name), value);
  return parsed.ok ? 'fine' : parsed.error.details['field'];
}

describe('shapes as types', () => {
  it('ids keep their kind, what may be absent is optional, dictionaries are typed', () => {
    expectTypeOf<SessionAnswer['session_id']>().toEqualTypeOf<SessionId>();
    expectTypeOf<SessionAnswer['sandbox']['id']>().toEqualTypeOf<SandboxId>();
    expectTypeOf<SessionAnswer['refresh_before']>().toEqualTypeOf<string | undefined>();
    expectTypeOf<NegotiateRequest['ttl']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<WorkloadTrust['claims']>().toEqualTypeOf<Record<string, string>>();
    expectTypeOf<PageQuery['limit']>().toEqualTypeOf<number | undefined>();
  });
});

describe('a request for a session', () => {
  const negotiate = (change: object) =>
    verdict('negotiateRequest', { thread_id: 'thr_1', mode: 'ensure', ...change });

  it(proves('bad input of BR-09 names its field', 'PR-06'), () => {
    for (const body of [null, [], 'x', 7]) expect(verdict('negotiateRequest', body)).toBe('body');
    for (const id of ['', 'x'.repeat(129), 'a b', 'a\0', 'é', 'a/b', 7, null])
      expect(negotiate({ thread_id: id }), String(id)).toBe('thread_id');
    for (const mode of ['', 'ENSURE', 'upsert', null, 1, ['ensure']])
      expect(negotiate({ mode }), String(mode)).toBe('mode');
    expect(verdict('negotiateRequest', { thread_id: 'thr_1' })).toBe('mode');
    for (const ttl of [-1, JSON.parse('1e309'), '900', Number.NaN, null, [900], true])
      expect(negotiate({ ttl }), String(ttl)).toBe('ttl');
    const many = Array.from({ length: 10_000 }, () => 'shell');
    expect(negotiate({ requested_capabilities: many })).toBe('requested_capabilities');
    expect(negotiate({ requested_capabilities: [] })).toBe('requested_capabilities');
    expect(negotiate({ requested_capabilities: ['shell', 'SHELL'] })).toBe(
      'requested_capabilities.1',
    );
  });

  it('a ttl out of bounds is not refused: it is for the server to clamp', () => {
    for (const ttl of [0, 1, 59.5, 60, 900, 1e9]) expect(negotiate({ ttl })).toBe('fine');
  });

  it('legal but strange thread ids are fine', () => {
    for (const id of ['..', '.', '-rf', 'a:b', '0'.repeat(128)])
      expect(negotiate({ thread_id: id })).toBe('fine');
  });

  it('names a thread one way or the other, and the same one if both', () => {
    expect(verdict('negotiateRequest', { mode: 'ensure' })).toBe('thread_id');
    const scope = { type: 'thread', id: 'thr_1' };
    expect(verdict('negotiateRequest', { mode: 'ensure', scope })).toBe('fine');
    expect(negotiate({ scope })).toBe('fine');
    expect(negotiate({ scope: { ...scope, id: 'thr_2' } })).toBe('scope.id');
    expect(negotiate({ scope: { ...scope, type: 'workspace' } })).toBe('scope.id');
    expect(negotiate({ scope: { ...scope, type: 'planet' } })).toBe('scope.type');
    expect(negotiate({ scope: 'thread' })).toBe('scope');
  });

  it('anything that only the full protocol has makes it a full request', () => {
    const face = (change: object) =>
      faceOf(z.parse(negotiateRequest, { thread_id: 'thr_1', mode: 'ensure', ...change }));
    expect(face({})).toBe('mvp');
    expect(face({ mode: 'get' })).toBe('mvp');
    expect(face({ ttl: 60, template: 'python' })).toBe('mvp');
    for (const change of [
      { mode: 'attach_only' },
      { mode: 'create_only' },
      { actor: { type: 'agent' } },
      { requested_capabilities: ['shell'] },
      { sandbox_hint: 'sb_1' },
      { provider_preference: 'auto' },
      { scope: { type: 'thread', id: 'thr_1' } },
    ])
      expect(face(change), JSON.stringify(change)).toBe('full');
  });
});

describe('requests', () => {
  it('a refresh by thread proves possession, by session it need not', () => {
    expect(verdict('threadRefreshRequest', { sandbox_id: 'sb_1' })).toBe('current_token');
    expect(verdict('threadRefreshRequest', { current_token: 'a b' })).toBe('current_token');
    expect(verdict('refreshRequest', {})).toBe('fine');
  });

  it('code has a thread and text, and a language that is known', () => {
    const code = { thread_id: 'thr_1', code: 'print(1)' };
    expect(verdict('codeRequest', code)).toBe('fine');
    expect(verdict('codeRequest', { ...code, language: 'bash', turn_id: 't', timeout_ms: 0 })).toBe(
      'fine',
    );
    expect(verdict('codeRequest', { thread_id: 'thr_1' })).toBe('code');
    expect(verdict('codeRequest', { ...code, language: 'ruby' })).toBe('language');
    expect(verdict('codeRequest', { ...code, timeout_ms: -1 })).toBe('timeout_ms');
    expect(verdict('executeMessage', { user_id: 'somebody else' })).toBe('code');
  });

  it('a command has arguments, and variables with plain names', () => {
    const run = (change: object) => verdict('execRequest', { argv: ['true'], ...change });
    expect(run({})).toBe('fine');
    expect(run({ argv: ['echo', '', '$(x)', '-n', 'a\nb', 'é'] })).toBe('fine');
    expect(verdict('execRequest', {})).toBe('argv');
    for (const argv of [[], [''], 'true', ['a\0'], [7], ['x', 'y'.repeat(128 * 1024)]])
      expect(run({ argv })).toBe('argv');
    expect(run({ env: { A: 'b=c', PATH: '/x' } })).toBe('fine');
    for (const name of ['A=B', 'A\0', 'A\n', '']) expect(run({ env: { [name]: 'x' } })).toBe('env');
    expect(run({ timeout_ms: -1 })).toBe('timeout_ms');
    expect(run({ background: 'yes' })).toBe('background');
  });

  it('a dictionary is counted before it is looked at', () => {
    const trust = {
      issuer: 'https://ci.example',
      audience: 'ailsd',
      subject: 'ci',
      tenant: 'acme',
      scopes: ['exec:sandbox'],
    };
    const claims = (size: number) =>
      Object.fromEntries(Array.from({ length: size }, (_, i) => [`k${i}`, 'v']));
    expect(verdict('workloadTrustRequest', { ...trust, claims: claims(32) })).toBe('fine');
    expect(verdict('workloadTrustRequest', { ...trust, claims: claims(33) })).toBe('claims');
    expect(verdict('workloadTrustRequest', { ...trust, claims: claims(200_000) })).toBe('claims');
    expect(verdict('workloadTrustRequest', { ...trust, claims: [] })).toBe('claims');
    expect(verdict('workloadTrustRequest', { ...trust, claims: { a: 1 } })).toBe('claims.a');
    expect(verdict('workloadTrustRequest', { ...trust, claims: {}, scopes: ['root'] })).toBe(
      'scopes.0',
    );
  });

  it('numbers in a query are clamped, and what is no number is refused', () => {
    expect(z.parse(shape('pageQuery'), { limit: '7' })).toEqual({ limit: 7 });
    expect(z.parse(shape('pageQuery'), { limit: '99999' })).toEqual({ limit: 200 });
    expect(z.parse(shape('pageQuery'), { limit: '0' })).toEqual({ limit: 1 });
    expect(z.parse(shape('logQuery'), { follow: '1', tail: '0' })).toEqual({
      follow: true,
      tail: 0,
    });
    expect(z.parse(shape('logQuery'), { follow: 'false' })).toEqual({ follow: false });
    for (const limit of ['-1', 'x', '', '1e3', ' 1', '1.5', 7, ['1', '2']])
      expect(verdict('pageQuery', { limit }), String(limit)).toBe('limit');
  });

  it('caps are whole and not negative; 0 is the kill switch', () => {
    expect(verdict('quotaPatch', { tenant_daily: 0 })).toBe('fine');
    for (const cap of [-1, 1.5, '10', 1e12, null])
      expect(verdict('quotaPatch', { agent_hourly: cap })).toBe('agent_hourly');
    expect(verdict('tenantPatch', { audit_retention_days: 181 })).toBe('audit_retention_days');
    expect(verdict('tenantPatch', { environment: 'open' })).toBe('environment');
  });
});

describe('answers a client reads', () => {
  const answer = {
    session_id: 'bind_789',
    thread_id: 'thr_1',
    sandbox: {
      id: 'sbx_abc123',
      provider: 'e2b',
      http_base_url: 'https://dp.example/sbx/v1',
      ws_base_url: 'wss://dp.example/sbx/v1',
    },
    token: 'x',
    expires_at: '2026-02-27T20:20:00Z',
  };

  it('may spell ids as their own system does, and absence as null', () => {
    const parsed = parseRequest(shape('sessionAnswer'), { ...answer, binding: null, policy: null });
    expect(parsed).toEqual({
      ok: true,
      value: { ...answer, binding: undefined, policy: undefined },
    });
    expect(z.parse(z.object({ a: maybe(z.string()) }), {})).toEqual({});
  });

  it('hold no address that a client should not go to', () => {
    for (const url of ['file:///etc/passwd', 'javascript:alert(1)', 'https://u:p@h/', 'ws://h'])
      expect(
        verdict('sessionAnswer', { ...answer, sandbox: { ...answer.sandbox, http_base_url: url } }),
      ).toBe('sandbox.http_base_url');
  });

  it('tell what was changed in the request', () => {
    const adjustments = [
      { field: 'ttl', requested: 5000, granted: 900 },
      { field: 'requested_capabilities', requested: 'fs:rw', granted: 'fs:ro' },
      { field: 'requested_capabilities', requested: 'exec', granted: null },
    ];
    expect(verdict('sessionAnswer', { ...answer, adjustments })).toBe('fine');
  });

  it("a breached cap is seed 004's dictionary with its dimension and its end", () => {
    expect(
      verdict('codeAnswer', {
        ok: false,
        error: 'SandboxCapExceeded',
        error_message: 'tenant_daily reached, resets_at 2026-02-28T00:00:00Z',
        exit_status: 'cap_exceeded',
        dimension: 'tenant_daily',
        resets_at: '2026-02-28T00:00:00Z',
      }),
    ).toBe('fine');
    expect(verdict('codeAnswer', { ok: false })).toBe('error');
    expect(verdict('codeAnswer', {})).toBe('ok');
  });

  it('an error keeps its details, and one of an unknown code is still an error', () => {
    const envelope = {
      error: { code: 'NEW_CODE', message: '', retryable: true, request_id: 'r', field: 'ttl' },
    };
    expect(parseRequest(shape('errorEnvelope'), envelope)).toEqual({ ok: true, value: envelope });
    expect(verdict('errorEnvelope', { error: 'no' })).toBe('error');
    expect(verdict('errorEnvelope', '<html>')).toBe('body');
  });

  it('a page of a list ends without a cursor', () => {
    expect(verdict('sandboxPage', { items: [] })).toBe('fine');
    expect(verdict('sandboxPage', { items: [], next_cursor: null })).toBe('fine');
    expect(verdict('sandboxPage', { items: [], next_cursor: 'abc' })).toBe('fine');
    expect(verdict('sandboxPage', { items: [{}] })).toBe('items.0.id');
    expect(verdict('sandboxPage', [])).toBe('body');
  });
});

describe('an answer of the device flow', () => {
  const device = {
    device_code: 'd',
    user_code: 'ABCD-EFGH',
    verification_uri: 'https://auth.example/device',
    expires_in: 600,
  };

  it('without an interval, or with none above zero, is polled every five seconds', () => {
    const interval = (value?: unknown) =>
      pollIntervalSeconds(z.parse(deviceCodeAnswer, { ...device, interval: value }));
    expect([undefined, null, 0, -5, 2, 5].map(interval)).toEqual([5, 5, 5, 5, 2, 5]);
  });

  it('is refused when it would have a person open or type something hostile (OA-11)', () => {
    for (const [field, values] of Object.entries({
      verification_uri: [
        'javascript:alert(1)',
        'file:///etc/passwd',
        'http://auth.example/device',
        'https://user:pw@auth.example/',
        'https://auth.example/\u001b[2J',
        'https://auth.example/\u202e',
        'http://127.0.0.1.evil.example/',
      ],
      user_code: ['x'.repeat(10_240), 'A\u001bB', 'A\u202eB', ''],
      expires_in: [-1, 0, 1e12, 'x'],
      interval: [1e9, 'x'],
    })) {
      for (const value of values)
        expect(verdict('deviceCodeAnswer', { ...device, [field]: value }), String(value)).toBe(
          field,
        );
    }
    for (const uri of ['http://localhost:8080/device', 'http://127.0.0.1/', 'http://[::1]:9/x?y#z'])
      expect(verdict('deviceCodeAnswer', { ...device, verification_uri: uri })).toBe('fine');
  });
});

describe('a time', () => {
  const isTime = (value: unknown) => z.safeParse(timestamp, value).success;

  it('is RFC 3339 in UTC', () => {
    for (const good of [
      '2026-02-27T20:20:00Z',
      '2026-02-27T20:20:00.5Z',
      '2026-02-27T20:20:00.123456Z',
      '2026-02-27T20:20:00+00:00',
      '2024-02-29T00:00:00Z',
    ])
      expect(isTime(good), good).toBe(true);
    for (const bad of [
      '2026-02-27T20:20Z',
      '2026-02-27 20:20:00Z',
      '2026-02-27T20:20:00',
      '2026-02-27T20:20:00+01:00',
      '2026-02-27t20:20:00z',
      '2026-02-30T00:00:00Z',
      '2023-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-02-27T24:00:00Z',
      '2026-02-27T20:60:00Z',
      '2026-02-27T20:20:00Z\n',
      '',
      0,
      null,
    ])
      expect(isTime(bad), String(bad)).toBe(false);
  });

  it('any moment as JavaScript writes it is one', () => {
    const moment = fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true });
    fc.assert(fc.property(moment, (date) => isTime(date.toISOString())));
  });
});

describe('a base URL', () => {
  const isHttp = (value: unknown) => z.safeParse(httpBaseUrl, value).success;
  const isWs = (value: unknown) => z.safeParse(wsBaseUrl, value).success;

  it('is http(s) or ws(s), perhaps with a port and a path, and nothing more', () => {
    for (const rest of ['h', 'h/', 'h:8080/a/b', '127.0.0.1:1', '[::1]:80/v1', 'h/@x']) {
      expect(isHttp(`http://${rest}`), rest).toBe(true);
      expect(isHttp(`https://${rest}`), rest).toBe(true);
      expect(isWs(`ws://${rest}`), rest).toBe(true);
      expect(isWs(`wss://${rest}`), rest).toBe(true);
      expect(isWs(`http://${rest}`), rest).toBe(false);
      expect(isHttp(`ws://${rest}`), rest).toBe(false);
    }
  });

  it('has no user, query, fragment, blank or backslash', () => {
    for (const bad of [
      'https://u@h',
      'https://u:p@h/',
      'https://@h/',
      'https://h/?token=x',
      'https://h/#x',
      'https:/h',
      'https:h',
      'https://',
      'https://h:99999/',
      'https://h\\@evil/',
      'https://h/a b',
      ' https://h',
      'https://h\n',
      'https://h/\u202e',
      'HTTPS://h',
      '//h',
      '',
      `https://h/${'x'.repeat(2048)}`,
    ])
      expect(isHttp(bad), bad).toBe(false);
  });
});

describe('a path in the workspace', () => {
  it('stays inside by its spelling', () => {
    for (const good of ['', 'a', 'a/b.txt', '.env', '..a', 'a..', 'ws-evil', 'a b', 'é', 'a%2e'])
      expect(isWorkspacePath(good), good).toBe(true);
    for (const bad of [
      '..',
      '../a',
      'a/..',
      'a/../b',
      '.',
      './a',
      '/',
      '/etc',
      'a//b',
      'a/',
      'a\\b',
      'a\0',
      'x'.repeat(4097),
    ])
      expect(isWorkspacePath(bad), bad).toBe(false);
  });
});

describe('access negotiated elsewhere', () => {
  it('is named by its path in the form that was given', () => {
    const field = (value: unknown) => {
      const parsed = parseBootstrap(value);
      return parsed.ok ? 'fine' : `${parsed.error.code} ${parsed.error.details['field']}`;
    };
    expect(field({})).toBe('CONFIG_INVALID session_id');
    expect(field(null)).toBe('CONFIG_INVALID body');
    expect(field({ config: {} })).toBe('CONFIG_INVALID config.configurable');
    expect(field({ config: { configurable: { sandbox: {} } } })).toBe(
      'CONFIG_INVALID config.configurable.sandbox.session_id',
    );
    fc.assert(fc.property(fc.anything(), (value) => field(value) !== 'fine'));
  });
});
