/** Access tokens at the relay, HTTP and WebSocket: what is genuine gets through to the sandbox, and nothing else, ever. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import type { VerifyToken } from '../../../src/server/http/principal.js';
import { Tenants } from '../../../src/server/store/tenants.js';
import { createAccessTokenVerifier } from '../../../src/server/tokens/access-token.js';
import { proves } from '../../requirements.js';
import { newSeed } from '../../support/random.js';
import {
  AUDIENCE,
  bitFlips,
  createSigner,
  type Forgery,
  forgeries,
  goodClaims,
  goodHeader,
  ISSUER,
  mutations,
  signRs256,
} from '../tokens/forge.js';
import { keyServer } from '../tokens/key-server.js';
import { type HostileSandbox, hostileSandbox } from './support/hostile-sandbox.js';
import { HANDSHAKE, rawRequest, statusOf } from './support/raw.js';
import { type RelayWorld, relayWorld } from './support/relay-world.js';

const BEGIN = Date.now();
const SEED = newSeed();
const clock = new ManualClock(BEGIN);
const signer = createSigner('k1');
const OWNER = { sub: String(goodClaims(BEGIN)['sub']), tenant: 'acme' };

let world: RelayWorld;
let sandbox: HostileSandbox;
let canary: HostileSandbox;
let keys: Awaited<ReturnType<typeof keyServer>>;
let verify: VerifyToken;
let sandboxId: string;

function verifier(): VerifyToken {
  return createAccessTokenVerifier({
    issuer: ISSUER,
    audience: AUDIENCE,
    jwks: keys.source,
    clock,
  });
}

function genuine(key = signer): string {
  const claims = { ...goodClaims(clock.now()), scope: 'read:sandbox exec:sandbox attach:sandbox' };
  return signRs256(goodHeader(key), claims, key.privateKey);
}

beforeAll(async () => {
  keys = await keyServer(() => clock.now());
  keys.publish(signer);
  sandbox = await hostileSandbox();
  canary = await hostileSandbox();
  const loose: VerifyToken = async (token) =>
    JSON.parse(Buffer.from(token.reveal(), 'base64url').toString());
  verify = loose;
  world = await relayWorld({ verify: (token) => verify(token) });
  await new Tenants(world.db).put({
    id: 'acme',
    isSandboxEnabled: true,
    environment: 'default-public',
    tokenMode: 'jwt',
    auditRetentionDays: 30,
  });
  const scopes = ['read:sandbox', 'write:sandbox', 'exec:sandbox', 'attach:sandbox'] as const;
  const principal = { kind: 'user', clientId: 'c', expiresAt: BEGIN + 1e9, jti: 'j' } as const;
  const as = { ...OWNER, ...principal, scopes };
  sandboxId = (await world.sandboxAt(`http://127.0.0.1:${sandbox.port}`, as)).id;
  verify = verifier();
});

afterAll(async () => {
  for (const one of [world, sandbox, canary, keys]) await one[Symbol.asyncDispose]();
});

/** By HTTP and by WebSocket; what each got. */
async function tryBoth(...tokens: readonly string[]): Promise<readonly string[]> {
  const bearers = tokens.map((token) => `Authorization: Bearer ${token}`);
  const base = `/v1/sandboxes/${sandboxId}`;
  return Promise.all([
    rawRequest(world.port, [`GET ${base}/commands HTTP/1.1`, 'Host: x', ...bearers]),
    rawRequest(world.port, [
      `GET ${base}/sessions/new HTTP/1.1`,
      'Host: x',
      ...bearers,
      ...HANDSHAKE,
    ]),
  ]);
}

function isRefused(answer: string): boolean {
  return (
    statusOf(answer) === 401 &&
    answer.includes('"code":"UNAUTHENTICATED"') &&
    /^WWW-Authenticate: Bearer error="invalid_token"\r$/im.test(answer)
  );
}

async function getThrough(forged: readonly Forgery[]): Promise<string[]> {
  const wrong: string[] = [];
  const queue = [...forged];
  const worker = async (): Promise<void> => {
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      for (const answer of await tryBoth(one.token))
        if (!isRefused(answer)) wrong.push(`${one.name}: ${answer.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return wrong;
}

describe('an access token at the relay', () => {
  it(proves(
    `is refused in each of more than 600 forged forms before the sandbox is touched; keys are fetched once, rotate, and may be away (seed ${SEED})`,
    'TK-01',
  ), async () => {
    const token = genuine();
    const forged = [
      ...forgeries(signer, BEGIN, `http://127.0.0.1:${canary.port}`),
      ...bitFlips(token),
      ...mutations(token, 150, SEED),
      { name: '64 KB', token: 'a'.repeat(64 * 1024) },
    ];
    expect(new Set(forged.map((one) => one.token)).size).toBeGreaterThan(600);
    const [good] = await tryBoth(token);
    expect(statusOf(good ?? '')).toBe(200);
    const touched = sandbox.connections;
    expect(await getThrough(forged)).toEqual([]);
    for (const answer of await tryBoth(token, token)) expect(isRefused(answer)).toBe(true);
    const random = Array.from({ length: 1_000 }, (_, at) => ({
      name: `kid ${at}`,
      token: signRs256(
        { ...goodHeader(signer), kid: randomBytes(8).toString('hex') },
        goodClaims(BEGIN),
        signer.privateKey,
      ),
    }));
    expect(await getThrough(random)).toEqual([]);
    expect(sandbox.connections).toBe(touched);
    expect(canary.connections).toBe(0);
    // The first use, and one more for all the names that nobody knew.
    expect(keys.visits.length).toBeLessThanOrEqual(2);

    const next = createSigner('k2');
    keys.publish(signer, next);
    await clock.advance(31_000);
    for (const key of [next, signer])
      expect(statusOf((await tryBoth(genuine(key)))[0] ?? '')).toBe(200);

    await keys.stop();
    await clock.advance(31_000);
    expect(statusOf((await tryBoth(genuine(next)))[0] ?? '')).toBe(200);
    verify = verifier();
    for (const answer of await tryBoth(genuine(next))) expect(statusOf(answer)).toBe(503);
    expect(world.log.join('')).not.toContain(token.split('.')[2]);
  }, 120_000);

  it('the sandbox gets a token of its own, never that one', () => {
    expect(sandbox.heard).toContain('uthorization: Bearer ');
    expect(sandbox.heard).not.toContain(genuine().split('.')[0]);
  });
});
