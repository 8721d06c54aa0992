/** Laws of what a token allows: never more than any limit, and never more, or longer, than what it was got for. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  allows,
  CAPABILITIES,
  type Capability,
  isCapability,
  parseCapabilities,
  SCOPE_CAPABILITIES,
} from '../../../src/protocol/capabilities.js';
import type { Principal } from '../../../src/protocol/principal.js';
import { isScope, LOGIN_SCOPES, SCOPES, type Scope } from '../../../src/protocol/scopes.js';
import { decideCapabilities } from '../../../src/server/broker/policy/decide.js';
import { ClientPolicies } from '../../../src/server/store/client-policies.js';
import { ALICE, ask, ensure, type Reply } from './support/client.js';
import { openWorld, type World } from './support/world.js';

const SEED = Number(process.env['AILSD_SEED'] ?? Date.now() % 2 ** 31);
const WORDS = Object.keys(CAPABILITIES).filter(isCapability);
const scopes = fc.subarray(Object.keys(SCOPES).filter(isScope));
const capabilities = fc.subarray(WORDS, { minLength: 1 });
const limit = fc.option(fc.subarray(WORDS), { nil: undefined });

/** By one capability at a time, in the words of the contract. */
function isAllowed(
  one: Capability,
  held: readonly Scope[],
  ...limits: (readonly Capability[] | undefined)[]
) {
  const fromScopes = held.some((scope) => allows(SCOPE_CAPABILITIES[scope], one));
  return fromScopes && limits.every((each) => each === undefined || allows(each, one));
}

describe(`what the broker grants (seed ${SEED})`, () => {
  const actors = fc.constantFrom('human', 'agent', undefined);
  const kinds = fc.constantFrom('user', 'service', 'agent');

  it('is requested ∩ scopes ∩ ceiling ∩ actor ∩ grant, told in full, and refused when empty', () => {
    fc.assert(
      fc.property(
        fc.record({
          scopes,
          requested: capabilities,
          ceiling: limit,
          grant: limit,
          actor: actors,
          kind: kinds,
        }),
        ({ scopes: held, requested, ceiling, grant, actor, kind }) => {
          const principal = principalOf(held, kind);
          const isAgent = kind === 'agent' || actor === 'agent';
          const policy = isAgent ? WORDS.filter((one) => one !== 'tunnel') : undefined;
          const expected = WORDS.filter(
            (one) => allows(requested, one) && isAllowed(one, held, ceiling, grant, policy),
          );
          const decide = () =>
            decideCapabilities({ ceiling }, { principal, actor, requested, grant });
          if (expected.length === 0) {
            expect(decide).toThrow(expect.objectContaining({ code: 'FORBIDDEN' }));
            return;
          }
          const decision = decide();
          expect(decision.actor).toBe(isAgent ? 'agent' : 'human');
          for (const one of WORDS)
            expect(allows(decision.capabilities, one), one).toBe(expected.includes(one));
          const told = new Set(decision.adjustments.map((one) => one.requested));
          for (const one of requested) expect(told.has(one), one).toBe(!expected.includes(one));
        },
      ),
      { seed: SEED, numRuns: 1_000 },
    );
  });

  it('by default is what such an actor gets, and nobody is made a human by saying so', () => {
    const decide = (principal: Principal, actor?: 'human' | 'agent') =>
      decideCapabilities({ ceiling: undefined }, { principal, actor }).capabilities;
    expect(decide(principalOf(LOGIN_SCOPES, 'user'))).toEqual(['fs:rw', 'shell']);
    expect(decide(principalOf(LOGIN_SCOPES, 'user'), 'agent')).toEqual(['fs:rw', 'process']);
    expect(decide(principalOf(LOGIN_SCOPES, 'agent'), 'human')).toEqual(['fs:rw', 'process']);
    expect(decide(principalOf(['read:sandbox'], 'user'))).toEqual(['fs:ro']);
  });
});

describe(`a token got for another (seed ${SEED})`, () => {
  let world: World;
  let threads = 0;
  beforeAll(async () => {
    world = await openWorld({ jobs: false });
    const policy = { sidecar: undefined, environment: {} };
    for (const [index, ceiling] of CEILINGS.entries())
      await new ClientPolicies(world.db).put({ ...policy, clientId: `client_${index}`, ceiling });
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  const step = fc.record({
    kind: fc.constantFrom('refresh', 'downscope'),
    from: fc.nat(100),
    scopes,
    client: fc.nat(CEILINGS.length - 1),
    wanted: capabilities,
    ttl: fc.option(fc.integer({ min: 0, max: 2_000 }), { nil: undefined }),
  });

  it('by any steps of refreshing and narrowing allows no more, and a copy lives no longer', async () => {
    let derived = 0;
    await fc.assert(
      fc.asyncProperty(
        capabilities,
        fc.array(step, { minLength: 1, maxLength: 8 }),
        async (first, steps) => {
          threads += 1;
          const thread = `thr_${threads}`;
          const made = await ensure(world.url(), thread, {
            body: { requested_capabilities: first },
          });
          if (made.status !== 200) return;
          const session = `/v1/sandbox/sessions/${made.json.session_id}`;
          const tokens = [{ token: String(made.json.token), endMs: Number.POSITIVE_INFINITY }];
          for (const { kind, from, scopes: held, client, wanted, ttl } of steps) {
            const source = tokens[from % tokens.length];
            if (source === undefined) throw new Error('there is always one');
            const as = { ...ALICE, scopes: held, clientId: `client_${client}` };
            const asked = { current_token: source.token, ...(ttl !== undefined && { ttl }) };
            const reply: Reply =
              kind === 'refresh'
                ? await ask(world.url(), 'POST', `${session}/refresh`, { as, body: asked })
                : await ask(world.url(), 'POST', `${session}/downscope`, {
                    as,
                    body: { ...asked, scopes: wanted },
                  });
            if (reply.status === 403) continue;
            expect(reply.status).toBe(200);
            derived += 1;
            const [before, after] = [claimsOf(source.token), claimsOf(reply.json.token)];
            expect([after.sub, after.aud, after.thread_id]).toEqual([
              before.sub,
              before.aud,
              before.thread_id,
            ]);
            expect(after.jti).not.toBe(before.jti);
            const [had, has] = [parsed(before.scope), parsed(after.scope)];
            for (const one of has) {
              expect(allows(had, one)).toBe(true);
              expect(isAllowed(one, held, CEILINGS[client])).toBe(true);
              if (kind === 'downscope') expect(allows(wanted, one)).toBe(true);
            }
            expect(after.exp - after.iat).toBeLessThanOrEqual(900);
            const endMs = kind === 'downscope' ? Math.min(source.endMs, before.exp) : source.endMs;
            expect(after.exp).toBeLessThanOrEqual(endMs);
            tokens.push({ token: reply.json.token, endMs });
          }
        },
      ),
      { seed: SEED, numRuns: Number(process.env['AILSD_SOAK'] ?? 0) > 0 ? 1_000 : 60 },
    );
    expect(derived).toBeGreaterThan(40);
  });
});

/** By client; undefined: no limit of its own. */
const CEILINGS: readonly (readonly Capability[] | undefined)[] = [
  undefined,
  ['fs:rw', 'shell:ro'],
  ['fs:ro', 'process'],
  [],
];

function principalOf(held: readonly Scope[], kind: Principal['kind']): Principal {
  return {
    ...ALICE,
    kind,
    tenant: 'default',
    clientId: 'ailsd-cli',
    scopes: held,
    expiresAt: 0,
    jti: 'access',
    ...(kind === 'agent' && { act: { sub: 'agent_1' } }),
  };
}

function parsed(scope: string): readonly Capability[] {
  const found = parseCapabilities(scope);
  if (found === undefined) throw new Error(`no scope: ${scope}`);
  return found;
}

function claimsOf(token: string) {
  const claims: {
    jti: string;
    iat: number;
    exp: number;
    scope: string;
    sub: string;
    aud: string;
    thread_id: string;
  } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  return claims;
}
