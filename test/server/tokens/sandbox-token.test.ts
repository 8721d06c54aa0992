/** What a sandbox makes of tokens, genuine and forged, before anything else about it is known. */
import { createHmac, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { Secret } from '../../../src/base/secret.js';
import { CAPABILITIES, isCapability } from '../../../src/protocol/capabilities.js';
import type { SandboxClaims } from '../../../src/protocol/claims.js';
import type { SandboxId, ThreadId, TokenId } from '../../../src/protocol/ids.js';
import { createAccessTokenVerifier } from '../../../src/server/tokens/access-token.js';
import { signInvite, verifyInvite } from '../../../src/server/tokens/invite.js';
import {
  isSandboxAssertion,
  sandboxOfAssertion,
  signSandboxAssertion,
} from '../../../src/server/tokens/sandbox-assertion.js';
import { SandboxKeys } from '../../../src/server/tokens/sandbox-keys.js';
import { signSandboxToken, verifySandboxToken } from '../../../src/server/tokens/sandbox-token.js';
import {
  bitFlips,
  createSigner,
  encode,
  type Fields,
  goodClaims,
  goodHeader,
  mutations,
  signRs256,
} from './forge.js';

const SEED = Number(process.env['AILSD_SEED'] ?? Date.now() % 2 ** 31);
const BEGIN = Date.parse('2026-01-15T12:00:00Z');
const IAT = BEGIN / 1000;
const SANDBOX = 'sb_0123456789abcdefghjkmnpqrs' as SandboxId;
const THREAD = 'thr_1' as ThreadId;
const KEY = new Uint8Array(randomBytes(32));

const GOOD: SandboxClaims = {
  sub: 'usr_alice',
  aud: SANDBOX,
  scope: 'fs:rw shell',
  thread_id: THREAD,
  room: THREAD,
  exp: IAT + 900,
  iat: IAT,
  jti: 'tok_1' as TokenId,
};

/** With nothing but node:crypto: none of our code says what a good one is. */
function sign(header: unknown, claims: unknown, key: Uint8Array = KEY, hash = 'sha256'): string {
  const text = (value: unknown): string =>
    encode(typeof value === 'string' ? value : JSON.stringify(value));
  const body = `${text(header)}.${text(claims)}`;
  return `${body}.${createHmac(hash, key).update(body).digest('base64url')}`;
}

const HEADER = { alg: 'HS256', typ: 'JWT' };

function judge(token: string, keys: readonly Uint8Array[] = [KEY], nowMs = BEGIN) {
  const bounds = { sandboxId: SANDBOX, threadId: THREAD, nowMs };
  return verifySandboxToken(new Secret(token), keys, bounds);
}

interface Variant {
  readonly name: string;
  readonly token: string;
}

function variants(): Variant[] {
  const made: Variant[] = [];
  const add = (name: string, token: string): void => void made.push({ name, token });
  const claims = (name: string, change: Fields): void =>
    add(`claims ${name}`, sign(HEADER, { ...GOOD, ...change }));
  const header = (name: string, change: Fields): void =>
    add(`header ${name}`, sign({ ...HEADER, ...change }, GOOD));

  add("another sandbox's key", sign(HEADER, GOOD, randomBytes(32)));
  add('no key', sign(HEADER, GOOD, new Uint8Array()));
  add('the key as text', sign(HEADER, GOOD, Buffer.from(Buffer.from(KEY).toString('base64url'))));
  for (const [alg, hash] of [
    ['HS512', 'sha512'],
    ['HS384', 'sha384'],
    ['HS1', 'sha1'],
  ] as const) {
    add(`${alg}`, sign({ ...HEADER, alg }, GOOD, KEY, hash));
    add(`${alg} called HS256`, sign(HEADER, GOOD, KEY, hash));
    add(`${alg} by name only`, sign({ ...HEADER, alg }, GOOD));
  }
  for (const alg of [
    'none',
    'None',
    '',
    'hs256',
    'HS256 ',
    'RS256',
    'ES256',
    null,
    1,
    ['HS256'],
    {},
  ]) {
    header(`alg ${JSON.stringify(alg)}`, { alg });
    add(
      `alg ${JSON.stringify(alg)} unsigned`,
      `${sign({ ...HEADER, alg }, GOOD).replace(/[^.]*$/, '')}`,
    );
  }
  header('without alg', { alg: undefined });
  for (const typ of [undefined, '', 'jwt', 'at+jwt', 'JWS', 'ailsd-sandbox+jwt', null, 1, ['JWT']])
    header(`typ ${JSON.stringify(typ)}`, { typ });
  for (const name of ['kid', 'jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64', 'zip', 'cty', 'exp'])
    for (const value of ['x', null, ['b64'], false])
      header(`${name} ${JSON.stringify(value)}`, { [name]: value });
  for (const text of [
    'null',
    '[]',
    '"HS256"',
    '',
    '{',
    '{"alg":"HS256"}',
    '[{"alg":"HS256","typ":"JWT"}]',
  ])
    add(`header ${text}`, sign(text, GOOD));

  for (const aud of [
    'sb_other',
    '',
    SANDBOX.toUpperCase(),
    `${SANDBOX} `,
    [SANDBOX],
    [],
    null,
    1,
    {},
    undefined,
    'https://broker.example',
    SANDBOX.slice(0, -1),
    `${SANDBOX}x`,
    '*',
  ])
    claims(`aud ${JSON.stringify(aud)}`, { aud });
  for (const scope of [
    undefined,
    null,
    '',
    ' ',
    'SHELL',
    'Shell',
    'fs:rw,shell',
    'fs:rw, shell',
    'fs:rw  shell',
    ' shell',
    'shell ',
    'shell\tfs:rw',
    'shell\n',
    ['fs:rw', 'shell'],
    ['shell'],
    {},
    1,
    true,
    'fs',
    'fs:*',
    '*',
    'fs_read',
    'exec',
    'admin:sandbox',
    'read:sandbox',
    'shell:rw',
    'shell:',
    'execution',
    'constructor',
    '__proto__',
    'x'.repeat(300),
  ])
    claims(`scope ${String(JSON.stringify(scope)).slice(0, 30)}`, { scope });
  for (const thread_id of ['thr_2', '', undefined, null, 1, '*', [THREAD], 'a b', 'x'.repeat(129)])
    claims(`thread_id ${String(JSON.stringify(thread_id)).slice(0, 20)}`, { thread_id });
  claims('another thread and room', { thread_id: 'thr_2', room: 'thr_2' });
  for (const room of ['thr_2', '*', '', null, 1, [THREAD]])
    claims(`room ${JSON.stringify(room)}`, { room });
  for (const exp of [
    undefined,
    null,
    '',
    'never',
    String(IAT + 900),
    [IAT + 900],
    true,
    {},
    -1,
    1e21,
    IAT + 901,
    IAT + 86_400,
    IAT,
    IAT - 1,
  ])
    claims(`exp ${JSON.stringify(exp)}`, { exp });
  for (const iat of [undefined, null, '', String(IAT), [IAT], -1, true, {}])
    claims(`iat ${JSON.stringify(iat)}`, { iat });
  for (const ahead of [61, 120, 600])
    claims(`iat ${ahead} s ahead`, { iat: IAT + ahead, exp: IAT + ahead + 60 });
  for (const nbf of [IAT + 6, IAT + 600, String(IAT), null, [], -1])
    claims(`nbf ${JSON.stringify(nbf)}`, { nbf });
  for (const sub of [undefined, null, '', 1, [], {}, 'a b', 'é', 'x'.repeat(256), '\u0000'])
    claims(`sub ${String(JSON.stringify(sub)).slice(0, 20)}`, { sub });
  for (const jti of [undefined, null, '', 1, [], 'a b', '-x', 'x'.repeat(129)])
    claims(`jti ${String(JSON.stringify(jti)).slice(0, 20)}`, { jti });
  for (const act of [null, 'agent', 1, {}, { sub: '' }, { sub: 1 }, [{ sub: 'a' }]])
    claims(`act ${JSON.stringify(act)}`, { act });
  for (const [name, value] of Object.entries({
    client_id: 'ailsd-cli',
    principal: 'user',
    scopes: 'execution',
    elevated: true,
  }))
    claims(`${name}: of another kind of token`, { [name]: value });
  for (const text of ['null', '[]', '1', '"x"', '', '{', '{}', 'not json'])
    add(`payload ${text}`, sign(HEADER, text));

  // Other kinds of token, even when signed with our key
  const signer = createSigner('k1');
  add('an access token', signRs256(goodHeader(signer), goodClaims(BEGIN), signer.privateKey));
  add('an access token by our key', sign(HEADER, goodClaims(BEGIN)));
  add(
    'an invite to execute',
    sign(HEADER, { sub: 'run_1', scopes: 'execution', exp: IAT + 60, iat: IAT }),
  );
  add(
    'an invite to a room',
    sign(HEADER, { sub: 'usr_alice', room: THREAD, exp: IAT + 60, iat: IAT }),
  );
  add(
    "a sandbox's assertion",
    signSandboxAssertion(KEY, { sandboxId: SANDBOX, nowMs: BEGIN }).reveal(),
  );

  const genuine = sign(HEADER, GOOD);
  const [h = '', p = '', s = ''] = genuine.split('.');
  const wider = encode(JSON.stringify({ ...GOOD, scope: 'fs:rw shell process' }));
  for (const [name, token] of Object.entries({
    'a wider payload': `${h}.${wider}.${s}`,
    'no signature': `${h}.${p}`,
    'empty signature': `${h}.${p}.`,
    'four parts': `${genuine}.${s}`,
    'first empty': `.${p}.${s}`,
    'second empty': `${h}..${s}`,
    'half a signature': `${h}.${p}.${s.slice(0, 22)}`,
    'signature twice': `${h}.${p}.${s}${s}`,
    'signature in hexadecimal': `${h}.${p}.${Buffer.from(s, 'base64url').toString('hex')}`,
    padded: `${genuine}=`,
    'a blank before': ` ${genuine}`,
    'a newline after': `${genuine}\n`,
    nothing: '',
    dots: '..',
    'too long': sign(HEADER, { ...GOOD, pad: 'x'.repeat(8_192) }),
    'an opaque token': `ailsd_opaque_${randomBytes(32).toString('base64url')}`,
  }))
    add(`shape ${name}`, token);
  return [...made, ...bitFlips(genuine), ...mutations(genuine, 300, SEED)];
}

describe('a sandbox token', () => {
  it('of the broker is valid, by any of the keys that count, and says what it allows', () => {
    const token = signSandboxToken(KEY, GOOD);
    for (const keys of [[KEY], [randomBytes(32), KEY], [KEY, randomBytes(32)]]) {
      const verdict = judge(token.reveal(), keys);
      expect(verdict).toMatchObject({
        kind: 'valid',
        claims: GOOD,
        capabilities: ['fs:rw', 'shell'],
      });
    }
    expect(token.reveal()).toBe(sign(HEADER, GOOD));
    expect(judge(token.reveal(), []).kind).toBe('invalid');
    expect(judge(sign({ typ: 'JWT', alg: 'HS256' }, GOOD)).kind).toBe('valid');
    expect(judge(sign(HEADER, { ...GOOD, room: undefined })).kind).toBe('valid');
    expect(judge(sign(HEADER, { ...GOOD, scope: 'shell:ro' }))).toMatchObject({
      capabilities: ['shell:ro'],
    });
  });

  it(`is refused in each of more than 550 forged or twisted forms (seed ${SEED})`, () => {
    const forged = variants().filter(({ token }) => token !== sign(HEADER, GOOD));
    expect(new Set(forged.map(({ token }) => token)).size).toBeGreaterThan(550);
    const taken = forged.filter(({ token }) => judge(token).kind !== 'invalid');
    expect(taken.map(({ name }) => name)).toEqual([]);
  });

  it('counts 5 s past its end and no longer, and only a genuine one is called expired', () => {
    const token = sign(HEADER, GOOD);
    const end = BEGIN + 900_000;
    expect(judge(token, [KEY], end + 1_000).kind).toBe('valid');
    expect(judge(token, [KEY], end + 4_999).kind).toBe('valid');
    expect(judge(token, [KEY], end + 5_000).kind).toBe('expired');
    expect(judge(token, [KEY], end + 6_000).kind).toBe('expired');
    const late = variants().filter(
      ({ token: one }) => one !== token && judge(one, [KEY], end + 86_400_000).kind !== 'invalid',
    );
    // What was only too early, or too soon over, is genuine once its time has passed.
    const early = /^claims (?:nbf \d|iat \d+ s ahead)/;
    expect(late.map(({ name }) => name).filter((name) => !early.test(name))).toEqual([]);
  });

  it('may be issued 60 s ahead of our clock, and not before 5 s of its beginning', () => {
    const ahead = (seconds: number) =>
      judge(sign(HEADER, { ...GOOD, iat: IAT + seconds, exp: IAT + seconds + 60 })).kind;
    expect([ahead(60), ahead(61)]).toEqual(['valid', 'invalid']);
    const from = (seconds: number) => judge(sign(HEADER, { ...GOOD, nbf: IAT + seconds })).kind;
    expect([from(5), from(6)]).toEqual(['valid', 'invalid']);
  });

  it('for any claims within the rules is read back as it was written', () => {
    const words = Object.keys(CAPABILITIES).filter(isCapability);
    const scope = fc.subarray(words, { minLength: 1 }).map((some) => some.join(' '));
    fc.assert(
      fc.property(
        scope,
        fc.stringMatching(/^[\x21-\x7e]{1,255}$/),
        fc.integer({ min: 1, max: 900 }),
        (given, sub, life) => {
          const claims = { ...GOOD, scope: given, sub, exp: IAT + life };
          const verdict = judge(signSandboxToken(KEY, claims).reveal());
          expect(verdict).toMatchObject({ kind: 'valid', claims });
        },
      ),
      { seed: SEED },
    );
  });

  it('is nothing at the broker', async () => {
    const signer = createSigner('k1');
    const verify = createAccessTokenVerifier({
      issuer: 'https://issuer.example',
      audience: SANDBOX,
      jwks: { fetch: async () => ({ keys: [signer.jwk] }) },
      clock: systemClock,
    });
    for (const token of [
      signSandboxToken(KEY, GOOD).reveal(),
      sign({ ...HEADER, kid: 'k1' }, GOOD),
    ])
      await expect(verify(new Secret(token))).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });
});

describe('the keys of sandboxes', () => {
  it('differ by sandbox, by generation and by master, and come out the same each time', () => {
    const master = new Secret(randomBytes(32).toString('base64url'));
    const keys = new SandboxKeys(master);
    const hex = (one: SandboxKeys, id: string, generation: number): string =>
      Buffer.from(one.keyOf(id as SandboxId, generation)).toString('hex');
    const other = new SandboxKeys(new Secret(randomBytes(32).toString('base64url')));
    const all = [
      hex(keys, 'sb_1', 1),
      hex(keys, 'sb_1', 2),
      hex(keys, 'sb_2', 1),
      hex(other, 'sb_1', 1),
    ];
    expect(new Set(all).size).toBe(4);
    expect(all.every((one) => one.length === 64)).toBe(true);
    expect(hex(new SandboxKeys(master), 'sb_1', 1)).toBe(all[0]);
    expect(() => new SandboxKeys(new Secret('short'))).toThrow(RangeError);
  });
});

describe('an invite', () => {
  const secret = new Secret('the shared secret');
  const bytes = Buffer.from('the shared secret');
  const times = { iat: IAT, exp: IAT + 60, jti: 'tok_1' };
  const run = { sub: 'run_1', scopes: 'execution', ...times };
  const shell = { sub: 'usr_alice', room: 'thr_1', ...times };
  const judgeInvite = (token: string, endpoint: 'execute' | 'computer', nowMs = BEGIN) =>
    verifyInvite(new Secret(token), secret, { endpoint, nowMs }).kind;

  it('is valid at its own endpoint for 60 s, also as S0 made them, without jti and iat', () => {
    const made = signInvite(secret, { ...run, scopes: 'execution' });
    expect(judgeInvite(made.reveal(), 'execute')).toBe('valid');
    expect(judgeInvite(made.reveal(), 'computer')).toBe('invalid');
    expect(judgeInvite(made.reveal(), 'execute', BEGIN + 59_999)).toBe('valid');
    expect(judgeInvite(made.reveal(), 'execute', BEGIN + 60_000)).toBe('expired');
    const foreign = { sub: 'usr_1', room: 'thr_1', exp: IAT + 60 };
    expect(judgeInvite(sign(HEADER, foreign, bytes), 'computer')).toBe('valid');
    expect(judgeInvite(sign(HEADER, { ...foreign, exp: IAT + 61 }, bytes), 'computer')).toBe(
      'invalid',
    );
    expect(
      judgeInvite(sign(HEADER, { ...shell, room: '*', elevated: true }, bytes), 'computer'),
    ).toBe('valid');
  });

  it('is refused in any other form', () => {
    const cases: Record<string, string> = {
      'another secret': sign(HEADER, run, randomBytes(32)),
      'without typ': sign({ alg: 'HS256' }, run, bytes),
      'alg none': `${sign({ ...HEADER, alg: 'none' }, run, bytes).replace(/[^.]*$/, '')}`,
      'a kid': sign({ ...HEADER, kid: 'x' }, run, bytes),
      'no exp': sign(HEADER, { ...run, exp: undefined }, bytes),
      'too long a life': sign(HEADER, { ...run, exp: IAT + 61 }, bytes),
      'issued ahead': sign(HEADER, { ...run, iat: IAT + 61, exp: IAT + 120 }, bytes),
      'scopes as a list': sign(HEADER, { ...run, scopes: ['execution'] }, bytes),
      'other scopes': sign(HEADER, { ...run, scopes: 'execution admin' }, bytes),
      'a user at execute': sign(HEADER, { ...run, sub: 'usr_alice' }, bytes),
      'a room at execute': sign(HEADER, { ...run, room: 'thr_1' }, bytes),
      'elevated at execute': sign(HEADER, { ...run, elevated: true }, bytes),
      'a sandbox token': sign(HEADER, GOOD, bytes),
      'not before': sign(HEADER, { ...run, nbf: IAT + 1 }, bytes),
    };
    for (const [name, token] of Object.entries(cases))
      expect(judgeInvite(token, 'execute'), name).toBe('invalid');
    for (const change of [
      { elevated: 'true' },
      { elevated: 1 },
      { room: '' },
      { room: ['*'] },
      { room: undefined },
      { room: 'a b' },
    ])
      expect(
        judgeInvite(sign(HEADER, { ...shell, ...change }, bytes), 'computer'),
        JSON.stringify(change),
      ).toBe('invalid');
  });
});

describe("a sandbox's assertion", () => {
  const who = { sandboxId: SANDBOX, nowMs: BEGIN };

  it('proves which sandbox asks for half a minute, give or take the clocks', () => {
    const made = signSandboxAssertion(KEY, who);
    expect(sandboxOfAssertion(made)).toBe(SANDBOX);
    const at = (nowMs: number, key = KEY) => isSandboxAssertion(made, key, { ...who, nowMs });
    expect([at(BEGIN), at(BEGIN - 30_000), at(BEGIN + 59_000)]).toEqual([true, true, true]);
    expect([at(BEGIN - 31_000), at(BEGIN + 60_000)]).toEqual([false, false]);
    expect(at(BEGIN, new Uint8Array(randomBytes(32)))).toBe(false);
    expect(isSandboxAssertion(made, KEY, { ...who, sandboxId: 'sb_other' as SandboxId })).toBe(
      false,
    );
  });

  it('is not to be had from a token, nor by twisting one', () => {
    const typ = 'ailsd-sandbox+jwt';
    const claims = { iss: SANDBOX, aud: 'ailsd-broker', iat: IAT, exp: IAT + 30 };
    const genuine = signSandboxAssertion(KEY, who).reveal();
    expect(genuine).toBe(sign({ alg: 'HS256', typ }, claims));
    const twisted = [
      signSandboxToken(KEY, GOOD).reveal(),
      sign(HEADER, claims),
      sign({ alg: 'none', typ }, claims),
      sign({ alg: 'HS256', typ, kid: '1' }, claims),
      sign({ alg: 'HS256', typ }, { ...claims, exp: IAT + 31 }),
      sign({ alg: 'HS256', typ }, { ...claims, exp: undefined }),
      sign({ alg: 'HS256', typ }, { ...claims, aud: SANDBOX }),
      sign({ alg: 'HS256', typ }, { ...claims, iss: ['sb_1'] }),
      sign({ alg: 'HS256', typ }, 'null'),
      ...bitFlips(genuine).map(({ token }) => token),
    ];
    for (const token of twisted.filter((one) => one !== genuine))
      expect(isSandboxAssertion(new Secret(token), KEY, who), token.slice(0, 60)).toBe(false);
  });
});
