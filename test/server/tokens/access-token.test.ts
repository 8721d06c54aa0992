/** Access tokens at a protected route, over a real connection: what is genuine gets in, and nothing else, ever. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { whoami } from '../../../src/server/http/whoami.js';
import { createAccessTokenVerifier } from '../../../src/server/tokens/access-token.js';
import type { JwksSource } from '../../../src/server/tokens/jwks-cache.js';
import { eventually } from '../../support/eventually.js';
import { type Reply, type Serving, serving } from '../http/serving.js';
import {
  AUDIENCE,
  bitFlips,
  createSigner,
  type Fields,
  type Forgery,
  forgeries,
  goodClaims,
  goodHeader,
  ISSUER,
  mutations,
  type Signer,
  signRs256,
} from './forge.js';
import { keyServer } from './key-server.js';

const BEGIN = Date.UTC(2026, 0, 15, 12);
const SEED = Number(process.env['AILSD_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

function broker(jwks: JwksSource, clock: ManualClock): Promise<Serving> {
  const verify = createAccessTokenVerifier({ issuer: ISSUER, audience: AUDIENCE, jwks, clock });
  return serving({ routes: { whoami: whoami() }, verify });
}

function ask(server: Serving, ...tokens: readonly string[]): Promise<Reply> {
  return server.send('/v1/whoami', {
    headers: tokens.map((token) => ['Authorization', `Bearer ${token}`] as const),
  });
}

function tokenOf(signer: Signer, nowMs: number, change: Fields = {}): string {
  return signRs256(goodHeader(signer), { ...goodClaims(nowMs), ...change }, signer.privateKey);
}

/** Sends them a few at a time and gives those that were not refused as they must be. */
async function accepted(server: Serving, forged: readonly Forgery[]): Promise<string[]> {
  const wrong: string[] = [];
  const queue = [...forged];
  const worker = async (): Promise<void> => {
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      const reply = await ask(server, one.token);
      if (!isRefused(reply)) wrong.push(`${one.name}: ${reply.status} ${reply.text}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return wrong;
}

function isRefused({ status, headers, json }: Reply): boolean {
  return (
    status === 401 &&
    json?.error?.code === 'UNAUTHENTICATED' &&
    json.error.request_id === headers['x-request-id'] &&
    headers['www-authenticate'] === 'Bearer error="invalid_token"'
  );
}

describe('a genuine token', () => {
  it('says who calls, with all its limits', async () => {
    const clock = new ManualClock(BEGIN);
    const signer = createSigner('k1');
    await using keys = await keyServer(() => clock.now());
    keys.publish(signer);
    await using server = await broker(keys.source, clock);
    const act = { sub: 'agent-7', client_id: 'planner', act: { sub: 'outer' } };
    const token = tokenOf(signer, BEGIN, { principal: 'agent', act, threads: ['thr_1', '..'] });
    const reply = await ask(server, token);
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      sub: 'usr_0123456789abcdef',
      principal: 'agent',
      tenant: 'acme',
      client_id: 'ailsd-cli',
      scopes: ['read:sandbox', 'exec:sandbox'],
      expires_at: '2026-01-15T12:15:00.000Z',
      act,
      threads: ['thr_1', '..'],
    });
  });

  it('counts up to its bounds: 30 s of leeway after its end, 60 s of clocks apart, several audiences, any tenant', async () => {
    const clock = new ManualClock(BEGIN);
    const signer = createSigner('k1');
    await using keys = await keyServer(() => clock.now());
    keys.publish(signer);
    await using server = await broker(keys.source, clock);
    const iat = BEGIN / 1000;
    const good: Fields[] = [
      { iat: iat - 900, exp: iat - 29 },
      { iat: iat + 60, exp: iat + 900 },
      { nbf: iat + 30 },
      { aud: ['https://other.example', AUDIENCE] },
      { tenant: undefined },
      { scope: '' },
      { sub: 'auth0|17', scope: 'openid read:sandbox unknown:scope' },
    ];
    for (const change of good) {
      const reply = await ask(server, tokenOf(signer, BEGIN, change));
      expect(reply.status, JSON.stringify(change)).toBe(200);
    }
    const without = await ask(
      server,
      tokenOf(signer, BEGIN, { tenant: undefined, scope: 'openid' }),
    );
    expect(without.json).toMatchObject({ tenant: 'default', scopes: [] });
    const lower = await server.send('/v1/whoami', {
      headers: [['authorization', `bearer  ${tokenOf(signer, BEGIN)}`]],
    });
    expect(lower.status).toBe(200);
  });
});

describe('a forged or twisted token', () => {
  it(`is refused in each of more than 900 forms, and nothing it names is visited (seed ${SEED})`, async () => {
    const clock = new ManualClock(BEGIN);
    const signer = createSigner('k1');
    await using keys = await keyServer(() => clock.now());
    keys.publish(signer);
    await using server = await broker(keys.source, clock);
    let canaryVisits = 0;
    const canary = createServer((_, response) => {
      canaryVisits += 1;
      response.end('{}');
    });
    canary.on('connection', () => {
      canaryVisits += 1;
    });
    await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve));
    const canaryUrl = `http://127.0.0.1:${(canary.address() as AddressInfo).port}`;

    const genuine = tokenOf(signer, BEGIN);
    const forged = [
      ...forgeries(signer, BEGIN, canaryUrl),
      ...bitFlips(genuine),
      ...mutations(genuine, 500, SEED),
      { name: '17 KiB', token: tokenOf(signer, BEGIN, { pad: 'x'.repeat(13_000) }) },
      { name: '64 KB', token: 'a'.repeat(64 * 1024) },
      { name: '64 KB, really signed', token: tokenOf(signer, BEGIN, { pad: 'x'.repeat(48_000) }) },
    ];
    expect(new Set(forged.map(({ token }) => token)).size).toBeGreaterThan(900);
    expect(forged.filter(({ token }) => token === genuine)).toEqual([]);
    expect((await ask(server, genuine)).status).toBe(200);
    expect(await accepted(server, forged)).toEqual([]);
    expect((await ask(server, genuine)).status).toBe(200);
    expect(canaryVisits).toBe(0);
    expect(keys.visits).toHaveLength(1);
    expect(server.log()).not.toContain(genuine.split('.')[2]);
    await new Promise((resolve) => canary.close(resolve));
  });

  it('is no better for being sent in a strange header, and a request without one names no error', async () => {
    const clock = new ManualClock(BEGIN);
    const signer = createSigner('k1');
    await using keys = await keyServer(() => clock.now());
    keys.publish(signer);
    await using server = await broker(keys.source, clock);
    const good = tokenOf(signer, BEGIN);
    expect(isRefused(await ask(server, good, good))).toBe(true);
    expect(isRefused(await ask(server, good, 'other'))).toBe(true);
    const values = [
      good,
      `Basic ${good}`,
      `Bearer`,
      `Bearer `,
      `Bearer ${good} `.concat(good),
      `Bearer ${good},Bearer ${good}`,
      `Bearer ${good}, x`,
      `Bearer Bearer ${good}`,
      `Bearer="${good}"`,
      `Bearer\t${good}`,
      `Bearertoken ${good}`,
      `DPoP ${good}`,
      `Token ${good}`,
      `"Bearer ${good}"`,
    ];
    for (const value of values) {
      const reply = await server.send('/v1/whoami', { headers: [['Authorization', value]] });
      expect(isRefused(reply), value.slice(0, 20)).toBe(true);
    }
    const cookie = await server.send(`/v1/whoami?access_token=${good}`, {
      headers: [
        ['Cookie', `access_token=${good}`],
        ['X-Authorization', `Bearer ${good}`],
        ['Proxy-Authorization', `Bearer ${good}`],
      ],
    });
    expect(cookie.status).toBe(401);
    expect(cookie.headers['www-authenticate']).toBe('Bearer');
  });
});

describe('the keys', () => {
  it('1,000 tokens with random kids cause at most one visit in 30 s', async () => {
    const clock = new ManualClock(BEGIN);
    const [signer, stranger] = [createSigner('k1'), createSigner('k1')];
    await using keys = await keyServer(() => clock.now());
    keys.publish(signer);
    await using server = await broker(keys.source, clock);
    for (let round = 0; round < 20; round++) {
      const forged = Array.from({ length: 50 }, () => {
        const kid = randomBytes(8).toString('hex');
        const token = signRs256(
          { ...goodHeader(signer), kid },
          goodClaims(clock.now()),
          stranger.privateKey,
        );
        return { name: kid, token };
      });
      expect(await accepted(server, forged)).toEqual([]);
      await clock.advance(5_000);
    }
    expect(keys.visits.length).toBeGreaterThanOrEqual(3);
    const gaps = keys.visits.slice(1).map((at, index) => at - (keys.visits[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(30_000);
  });

  it('after a rotation the new key works at first use, the old one while it is published, then no more', async () => {
    const clock = new ManualClock(BEGIN);
    const [before, after] = [createSigner('k1'), createSigner('k2')];
    await using keys = await keyServer(() => clock.now());
    keys.publish(before);
    await using server = await broker(keys.source, clock);
    const old = tokenOf(before, BEGIN + 300_000);
    expect((await ask(server, tokenOf(before, BEGIN))).status).toBe(200);
    keys.publish(after, before);
    await clock.advance(30_000);
    expect((await ask(server, tokenOf(after, clock.now()))).status).toBe(200);
    await clock.advance(270_000);
    expect((await ask(server, old)).status).toBe(200);
    keys.publish(after);
    await clock.advance(30_000);
    // The first use after that long makes it ask; from the answer on the old key is gone.
    await ask(server, old);
    await eventually(async () => isRefused(await ask(server, old)));
    expect((await ask(server, tokenOf(after, clock.now()))).status).toBe(200);
  });

  it('a source that may be asked often is waited for, so a brand-new key is never refused', async () => {
    const clock = new ManualClock(BEGIN);
    const [before, after] = [createSigner('k1'), createSigner('k2')];
    await using keys = await keyServer(() => clock.now());
    keys.publish(before);
    await using server = await broker({ ...keys.source, gapMs: 250 }, clock);
    expect((await ask(server, tokenOf(before, BEGIN))).status).toBe(200);
    keys.publish(after, before);
    const replies = Promise.all(
      Array.from({ length: 20 }, () => ask(server, tokenOf(after, BEGIN))),
    );
    await eventually(() => clock.sleeping > 0);
    await clock.advance(250);
    expect((await replies).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(keys.visits).toHaveLength(2);
  });

  it('while the key server is down, known keys go on and unknown ones are refused', async () => {
    const clock = new ManualClock(BEGIN);
    const [signer, stranger] = [createSigner('k1'), createSigner('k9')];
    await using keys = await keyServer(() => clock.now());
    keys.publish(signer);
    await using server = await broker(keys.source, clock);
    expect((await ask(server, tokenOf(signer, BEGIN))).status).toBe(200);
    await keys.stop();
    for (let minute = 0; minute < 5; minute++) {
      await clock.advance(60_000);
      expect((await ask(server, tokenOf(signer, clock.now()))).status).toBe(200);
      expect(isRefused(await ask(server, tokenOf(stranger, clock.now())))).toBe(true);
    }
    await keys.start();
    keys.publish(signer, stranger);
    await clock.advance(30_000);
    expect((await ask(server, tokenOf(stranger, clock.now()))).status).toBe(200);
  });

  it('with no keys at all nobody gets in: 503, and soon after the keys are there it works', async () => {
    const clock = new ManualClock(BEGIN);
    const signer = createSigner('k1');
    await using keys = await keyServer(() => clock.now());
    keys.publish(signer);
    await keys.stop();
    await using server = await broker(keys.source, clock);
    const cold = async (): Promise<void> => {
      const reply = await ask(server, tokenOf(signer, clock.now()));
      expect(reply.status).toBe(503);
      expect(reply.json.error).toMatchObject({ code: 'BACKEND_UNAVAILABLE', retryable: true });
      expect(reply.headers['retry-after']).toBe('1');
    };
    await cold();
    await keys.start();
    for (const nonsense of [
      '<html>',
      '[]',
      '{"keys":{}}',
      JSON.stringify({ keys: Array(65).fill({ kty: 'RSA' }) }),
    ]) {
      keys.say(nonsense);
      await clock.advance(60_000);
      await cold();
    }
    expect(isRefused(await ask(server, 'nonsense.token.here'))).toBe(true);
    keys.publish(signer);
    await clock.advance(30_000);
    expect((await ask(server, tokenOf(signer, clock.now()))).status).toBe(200);
  });

  it('a key server that never answers is given up after 5 s', async () => {
    const clock = new ManualClock(BEGIN);
    const signer = createSigner('k1');
    let aborted = false;
    const jwks: JwksSource = {
      fetch: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true;
            reject(signal.reason);
          });
        }),
    };
    await using server = await broker(jwks, clock);
    const reply = ask(server, tokenOf(signer, BEGIN));
    await eventually(() => clock.sleeping > 0);
    await clock.advance(5_000);
    expect((await reply).status).toBe(503);
    expect(aborted).toBe(true);
  });

  it('keys that are too short, for other uses or of other kinds are not taken from a set', async () => {
    const clock = new ManualClock(BEGIN);
    const signer = createSigner('k1');
    const { jwk } = signer;
    await using keys = await keyServer(() => clock.now());
    const sets: Fields[] = [
      { ...jwk, use: 'enc' },
      { ...jwk, alg: 'RS512' },
      { ...jwk, alg: 'PS256' },
      { ...jwk, kty: 'oct', k: 'AAAA' },
      { ...jwk, n: String(jwk['n']).slice(0, 171) },
      { ...jwk, kid: undefined },
    ];
    for (const key of sets) {
      keys.say(JSON.stringify({ keys: [key] }));
      await using server = await broker(keys.source, clock);
      expect(isRefused(await ask(server, tokenOf(signer, BEGIN))), JSON.stringify(key)).toBe(true);
    }
  });
});
