import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  accessClaims,
  computerInvite,
  executeInvite,
  parseClaims,
  sandboxClaims,
  TOKEN_HEADERS,
} from '../../src/protocol/claims.js';
import { proves } from '../requirements.js';

const NOW = 1_740_570_600;

const access = {
  iss: 'https://auth.example',
  sub: 'user_1',
  aud: 'https://broker.example',
  client_id: 'ailsd-cli',
  scope: 'read:sandbox exec:sandbox',
  principal: 'user',
  tenant: 'acme',
  exp: NOW + 900,
  iat: NOW,
  jti: 'tok_1',
};

/** Seed 003, section 3, verbatim but for the comments. */
const SEED_003: unknown = JSON.parse(`{
  "sub": "user_xyz",
  "aud": "sbx_abc123",
  "scope": "fs:rw shell",
  "thread_id": "thr_456",
  "exp": 1740571500,
  "iat": 1740570600,
  "jti": "tok_unique_id"
}`);

const sandbox = {
  sub: 'user_1',
  aud: 'sb_1',
  scope: 'fs:rw shell',
  thread_id: 'thr_1',
  room: 'thr_1',
  exp: NOW + 900,
  iat: NOW,
  jti: 'tok_2',
};

/** Seed 000: what its two token generators write. */
const execute = { sub: 'run_42', exp: NOW + 60, scopes: 'execution' };
const computer = { sub: 'user_1', room: 'thr_1', exp: NOW + 60 };

const KINDS = {
  access: [accessClaims, access],
  sandbox: [sandboxClaims, sandbox],
  execute: [executeInvite, execute],
  computer: [computerInvite, computer],
} as const;

const accepts = (schema: (typeof KINDS)[keyof typeof KINDS][0], claims: unknown): boolean =>
  parseClaims(schema, claims).ok;

describe('claims', () => {
  it(proves('each kind of token passes for its own kind and for no other', 'PR-11'), () => {
    for (const [kind, [schema]] of Object.entries(KINDS)) {
      for (const [other, [, claims]] of Object.entries(KINDS))
        expect(accepts(schema, claims), `${other} as ${kind}`).toBe(kind === other);
    }
  });

  it(proves('a token with a claim that only other kinds have passes for neither', 'PR-11'), () => {
    const claims: Record<string, unknown> = {
      aud: 'sb_1',
      client_id: 'ailsd-cli',
      elevated: true,
      principal: 'user',
      room: '*',
      scope: 'shell',
      scopes: 'execution',
      thread_id: 'thr_1',
    };
    const foreign = {
      access: ['elevated', 'room', 'scopes', 'thread_id'],
      sandbox: ['client_id', 'elevated', 'principal', 'scopes'],
      execute: ['aud', 'client_id', 'elevated', 'principal', 'room', 'scope', 'thread_id'],
      computer: ['aud', 'client_id', 'principal', 'scope', 'scopes', 'thread_id'],
    } as const;
    for (const kind of ['access', 'sandbox', 'execute', 'computer'] as const) {
      const [schema, own] = KINDS[kind];
      for (const mark of foreign[kind])
        expect(accepts(schema, { ...own, [mark]: claims[mark] }), `${kind} + ${mark}`).toBe(false);
    }
  });

  it("seed 003's token passes, and so does one that names the room too", () => {
    expect(accepts(sandboxClaims, SEED_003)).toBe(true);
    expect(accepts(sandboxClaims, sandbox)).toBe(true);
  });

  it(proves("seed 000's invites pass as they are, and with what ours add", 'PR-11'), () => {
    const ours = { iat: NOW, jti: 'tok_3' };
    expect(accepts(executeInvite, { ...execute, ...ours })).toBe(true);
    expect(accepts(computerInvite, { ...computer, ...ours, elevated: true })).toBe(true);
    expect(accepts(computerInvite, { ...computer, room: '*' })).toBe(true);
  });

  it('how each kind is signed is not for the token to say', () => {
    expect(TOKEN_HEADERS).toEqual({
      access: { alg: 'RS256', typ: 'at+jwt' },
      sandbox: { alg: 'HS256', typ: 'JWT' },
      invite: { alg: 'HS256', typ: 'JWT' },
    });
  });

  it(proves('a missing claim is a refused token', 'PR-11'), () => {
    const optional = new Set(['tenant', 'room']);
    for (const [kind, [schema, claims]] of Object.entries(KINDS)) {
      for (const name of Object.keys(claims)) {
        if (kind !== 'computer' && optional.has(name)) continue;
        const { [name]: _, ...rest }: Record<string, unknown> = claims;
        expect(accepts(schema, rest), `${kind} without ${name}`).toBe(false);
      }
    }
  });

  it('a token without a tenant belongs to the default one', () => {
    const { tenant: _, ...rest } = access;
    expect(parseClaims(accessClaims, rest)).toMatchObject({
      ok: true,
      value: { tenant: 'default' },
    });
  });

  it(proves('no token lives longer than its kind may, or ends before it begins', 'PR-11'), () => {
    expect(accepts(accessClaims, { ...access, exp: NOW + 901 })).toBe(false);
    expect(accepts(sandboxClaims, { ...sandbox, exp: NOW + 901 })).toBe(false);
    expect(accepts(executeInvite, { ...execute, iat: NOW, exp: NOW + 61 })).toBe(false);
    expect(accepts(computerInvite, { ...computer, iat: NOW, exp: NOW + 61 })).toBe(false);
    expect(accepts(sandboxClaims, { ...sandbox, exp: NOW })).toBe(false);
    expect(accepts(sandboxClaims, { ...sandbox, exp: NOW + 30 })).toBe(true);
  });

  it(proves('the sandbox-token variants of TK-02 are refused', 'PR-11'), () => {
    const variants: Record<string, unknown>[] = [
      { scope: 'SHELL' },
      { scope: 'fs:rw,shell' },
      { scope: ['fs:rw', 'shell'] },
      { scope: '' },
      { scope: 'fs_read' },
      { room: 'thr_2' },
      { room: '*' },
      { thread_id: 'a/b' },
      { aud: ['sb_1'] },
      { aud: ['sb_1', 'sb_2'] },
      { aud: '*' },
      { exp: String(NOW + 900) },
      { exp: null },
      { exp: Number.NaN },
      { exp: Number.POSITIVE_INFINITY },
      { iat: '0' },
      { iat: -1 },
      { nbf: 'soon' },
      { jti: '' },
      { sub: '' },
      { sub: 'a b' },
      { sub: 'a\n' },
      { principal: 'user' },
      { client_id: 'ailsd-cli' },
      { scopes: 'execution' },
      { elevated: true },
    ];
    for (const change of variants)
      expect(accepts(sandboxClaims, { ...sandbox, ...change }), JSON.stringify(change)).toBe(false);
  });

  it(proves('access-token claims of the wrong form are refused', 'PR-11'), () => {
    const variants: Record<string, unknown>[] = [
      { exp: 'x' },
      { scope: ['read:sandbox'] },
      { principal: 'admin' },
      { aud: [] },
      { aud: 7 },
      { iss: '' },
      { principal: 'agent' },
      { act: 'agent_1' },
      { act: {} },
      { threads: [] },
      { threads: ['a/b'] },
      { tenant: '../x' },
      { thread_id: 'thr_1' },
      { room: '*' },
    ];
    for (const change of variants)
      expect(accepts(accessClaims, { ...access, ...change }), JSON.stringify(change)).toBe(false);
    expect(accepts(accessClaims, { ...access, aud: ['a', 'b'], threads: ['..'] })).toBe(true);
  });

  it('an invite says run_, execution and a room to the letter', () => {
    for (const change of [
      { sub: 'user_1' },
      { sub: 'run_' },
      { scopes: ['execution'] },
      { scopes: 'Execution' },
    ])
      expect(accepts(executeInvite, { ...execute, ...change })).toBe(false);
    for (const change of [
      { room: 'a b' },
      { room: '**' },
      { room: ['thr_1'] },
      { elevated: 'true' },
    ])
      expect(accepts(computerInvite, { ...computer, ...change })).toBe(false);
  });

  it('an agent names whom it acts through, nested as deep as eight and no deeper', () => {
    const chain = (depth: number): object =>
      depth === 1 ? { sub: 'agent_1' } : { sub: 'agent_1', client_id: 'c', act: chain(depth - 1) };
    const agent = { ...access, principal: 'agent' };
    expect(accepts(accessClaims, { ...agent, act: chain(1) })).toBe(true);
    expect(accepts(accessClaims, { ...agent, act: chain(8) })).toBe(true);
    expect(accepts(accessClaims, { ...agent, act: chain(9) })).toBe(false);
    expect(accepts(accessClaims, { ...agent, act: chain(5_000) })).toBe(false);
  });

  it('the bearer learns that the token is refused, the log learns why', () => {
    const parsed = parseClaims(sandboxClaims, { ...sandbox, aud: ['sb_1'] });
    const error = parsed.ok ? undefined : parsed.error;
    expect(error).toMatchObject({ code: 'UNAUTHENTICATED', details: {} });
    expect(error?.message).not.toContain('aud');
    expect(error?.internal).toContain('aud');
  });

  it(proves('checking claims is total', 'PR-11'), () => {
    fc.assert(
      fc.property(
        fc.constantFrom('access', 'sandbox', 'execute', 'computer'),
        fc.anything(),
        (kind, value) => {
          expect(accepts(KINDS[kind][0], value)).toBe(false);
        },
      ),
    );
  });
});
