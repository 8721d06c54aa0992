import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import { accessClaims } from '../../../src/protocol/claims.js';
import { parse } from '../../../src/protocol/parse.js';
import { CLI_CLIENT_ID, GRANT_TYPES } from '../../../src/protocol/shapes/issuer.js';
import { Clients } from '../../../src/server/store/clients.js';
import { IssuerKeys } from '../../../src/server/store/keys.js';
import { Users } from '../../../src/server/store/users.js';
import { type NewTrust, WorkloadTrust } from '../../../src/server/store/workload-trust.js';
import { hashClientSecret } from '../../../src/server/tokens/client-secret.js';
import { proves } from '../../requirements.js';
import {
  type Answer,
  claimsOf,
  exchange,
  introspect,
  login,
  post,
  refresh,
  signedIn,
} from './support/oauth.js';
import type { Person } from './support/person.js';
import { AGENT, AUDIENCE, createWorld, type World } from './support/world.js';

const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';

let world: World;
let ada: Person;
beforeAll(async () => {
  world = await createWorld();
  ada = await signedIn(world.url);
});
afterAll(() => world[Symbol.asyncDispose]());

function jwt(header: object, payload: object, seal: (data: string) => Buffer): string {
  const data = [header, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${data}.${seal(data).toString('base64url')}`;
}

function rs256(key: KeyObject): (data: string) => Buffer {
  return (data) => sign('sha256', Buffer.from(data), key);
}

async function ourKey(): Promise<{ readonly kid: string; readonly key: KeyObject }> {
  const [current] = await new IssuerKeys(world.db).list('signing');
  const { createPrivateKey } = await import('node:crypto');
  const key = createPrivateKey({
    key: JSON.parse(current?.material.reveal() ?? '{}'),
    format: 'jwk',
  });
  return { kid: current?.kid ?? '', key };
}

function refused(answer: Answer): string {
  return `${answer.status} ${answer.body.error}`;
}

describe('an agent acts for somebody', () => {
  it(
    proves('with what it asked for of what it was given, in the name of who gave it', 'OA-12'),
    async () => {
      const subject = await login(world, { person: ada, choice: { threads: 'thr_one' } });
      const answer = await exchange(world.url, AGENT, {
        subject_token: subject.access_token,
        scope: 'read:sandbox exec:sandbox',
      });
      expect(answer).toMatchObject({
        status: 200,
        body: {
          issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          token_type: 'Bearer',
          scope: 'read:sandbox exec:sandbox',
        },
      });
      expect(answer.body.refresh_token).toBeUndefined();
      const held = claimsOf(subject.access_token);
      const claims = claimsOf(answer.body.access_token);
      expect(parse(accessClaims, claims, 'INTERNAL', '').ok).toBe(true);
      expect(claimsOf(answer.body.access_token, 0)).toMatchObject({ alg: 'RS256', typ: 'at+jwt' });
      expect(claims).toMatchObject({
        iss: world.url,
        aud: AUDIENCE,
        sub: 'usr_ada',
        client_id: AGENT.clientId,
        principal: 'agent',
        tenant: 'default',
        scope: 'read:sandbox exec:sandbox',
        act: { sub: AGENT.clientId, client_id: AGENT.clientId },
        threads: ['thr_one'],
      });
      expect(claims.exp).toBeLessThanOrEqual(held.exp);
      expect(claims.jti).not.toBe(held.jti);
    },
  );

  it(proves('each hop is in the token, narrows further and lives no longer', 'OA-12'), async () => {
    await world.addClient({
      clientId: 'agent2',
      secretHash: hashClientSecret(new Secret('second-secret')),
      grants: [GRANT_TYPES.tokenExchange, GRANT_TYPES.clientCredentials],
    });
    const second = { clientId: 'agent2', secret: 'second-secret' };
    const { access_token: subject } = await login(world, { person: ada });
    const one = await exchange(world.url, AGENT, {
      subject_token: subject,
      scope: 'read:sandbox write:sandbox exec:sandbox',
    });
    const two = await exchange(world.url, second, {
      subject_token: one.body.access_token,
      scope: 'read:sandbox write:sandbox',
    });
    const three = await exchange(world.url, AGENT, {
      subject_token: two.body.access_token,
      scope: 'read:sandbox',
    });
    const last = claimsOf(three.body.access_token);
    expect(last).toMatchObject({ sub: 'usr_ada', principal: 'agent', scope: 'read:sandbox' });
    expect(last.act).toEqual({
      sub: AGENT.clientId,
      client_id: AGENT.clientId,
      act: {
        sub: 'agent2',
        client_id: 'agent2',
        act: { sub: AGENT.clientId, client_id: AGENT.clientId },
      },
    });
    const ends = [
      subject,
      one.body.access_token,
      two.body.access_token,
      three.body.access_token,
    ].map((token) => claimsOf(token).exp);
    expect(ends).toEqual([...ends].sort((a, b) => b - a));
    expect(
      refused(
        await exchange(world.url, second, {
          subject_token: three.body.access_token,
          scope: 'read:sandbox write:sandbox',
        }),
      ),
    ).toBe('400 invalid_scope');

    // The agent named by its own token instead of by its client.
    const own = await post(`${world.url}/token`, {
      grant_type: 'client_credentials',
      client_id: 'agent2',
      client_secret: 'second-secret',
      scope: 'read:sandbox',
    });
    const named = await exchange(world.url, AGENT, {
      subject_token: subject,
      actor_token: own.body.access_token,
      actor_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    });
    expect(claimsOf(named.body.access_token)).toMatchObject({
      sub: 'usr_ada',
      client_id: AGENT.clientId,
      act: { sub: 'agent2', client_id: 'agent2' },
    });
  });

  it(
    proves('wider scope, another audience and a longer life are not to be had', 'OA-12'),
    async () => {
      const { access_token: narrow } = await login(world, {
        person: ada,
        choice: { scopes: ['read:sandbox'] },
      });
      for (const scope of [
        'exec:sandbox',
        'read:sandbox write:sandbox',
        'admin:sandbox',
        'read:sandbox fly:moon',
      ]) {
        expect(
          refused(await exchange(world.url, AGENT, { subject_token: narrow, scope })),
          scope,
        ).toBe('400 invalid_scope');
      }
      for (const target of [
        { audience: 'https://elsewhere.example' },
        { resource: 'https://elsewhere.example' },
      ]) {
        expect(
          refused(await exchange(world.url, AGENT, { subject_token: narrow, ...target })),
        ).toBe('400 invalid_target');
      }
      const longer = await exchange(world.url, AGENT, {
        subject_token: narrow,
        audience: AUDIENCE,
        expires_in: '86400',
        requested_lifetime: '86400',
        exp: '99999999999',
      });
      expect(longer.status).toBe(200);
      expect(claimsOf(longer.body.access_token)).toMatchObject({ scope: 'read:sandbox' });
      expect(claimsOf(longer.body.access_token).exp).toBeLessThanOrEqual(claimsOf(narrow).exp);
      // A client gets no more than its own row allows, whoever it acts for.
      await world.addClient({
        clientId: 'reading-agent',
        kind: 'public',
        grants: [GRANT_TYPES.tokenExchange],
        allowedScopes: ['read:sandbox'],
      });
      const { access_token: wide } = await login(world, { person: ada });
      const reader = { clientId: 'reading-agent' };
      expect(
        claimsOf((await exchange(world.url, reader, { subject_token: wide })).body.access_token)
          .scope,
      ).toBe('read:sandbox');
      expect(
        refused(await exchange(world.url, reader, { subject_token: wide, scope: 'exec:sandbox' })),
      ).toBe('400 invalid_scope');
    },
  );

  it(
    proves('tokens of another kind, over, revoked or of another issuer are refused', 'OA-12'),
    async () => {
      const body = await login(world, { person: ada });
      const { kid, key } = await ourKey();
      const claims = claimsOf(body.access_token);
      const header = { alg: 'RS256', typ: 'at+jwt', kid };
      const now = Math.floor(Date.now() / 1000);
      const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
      const sandboxToken = jwt(
        { alg: 'HS256', typ: 'JWT' },
        {
          sub: 'usr_ada',
          aud: 'sb_1',
          scope: 'shell',
          thread_id: 'thr_one',
          exp: now + 600,
          iat: now,
          jti: 'tok_1',
        },
        (data) => createHmac('sha256', 'key').update(data).digest(),
      );
      const cases: readonly [name: string, token: string, answer: string][] = [
        ['an ID token', body.id_token, '400 invalid_request'],
        ['a sandbox token', sandboxToken, '400 invalid_request'],
        ['a refresh token', body.refresh_token, '400 invalid_request'],
        ['noise', 'x.y.z', '400 invalid_request'],
        [
          'alg none',
          jwt({ ...header, alg: 'none' }, claims, () => Buffer.alloc(0)),
          '400 invalid_request',
        ],
        [
          'HS256 with the public key',
          jwt({ ...header, alg: 'HS256' }, claims, (data) =>
            createHmac('sha256', kid).update(data).digest(),
          ),
          '400 invalid_request',
        ],
        [
          'expired',
          jwt(header, { ...claims, iat: now - 1000, exp: now - 100 }, rs256(key)),
          '400 invalid_grant',
        ],
        [
          'never issued',
          jwt(header, { ...claims, jti: 'tok_invented' }, rs256(key)),
          '400 invalid_grant',
        ],
        [
          'another issuer',
          jwt(header, { ...claims, iss: 'https://other.example' }, rs256(stranger)),
          '400 invalid_grant',
        ],
        [
          'another audience',
          jwt(header, { ...claims, aud: 'https://other.example' }, rs256(key)),
          '400 invalid_grant',
        ],
        ['another key', jwt(header, claims, rs256(stranger)), '400 invalid_grant'],
        [
          'an unknown key',
          jwt({ ...header, kid: 'unknown' }, claims, rs256(stranger)),
          '400 invalid_grant',
        ],
        [
          'a critical header',
          jwt({ ...header, crit: ['b64'], b64: false }, claims, rs256(key)),
          '400 invalid_grant',
        ],
      ];
      for (const [name, token, answer] of cases) {
        expect(refused(await exchange(world.url, AGENT, { subject_token: token })), name).toBe(
          answer,
        );
      }
      // As an ID token, which is for other systems' alone.
      for (const token of [body.id_token, body.access_token]) {
        expect(
          refused(
            await exchange(world.url, AGENT, {
              subject_token: token,
              subject_token_type: ID_TOKEN,
            }),
          ),
        ).toBe('400 invalid_request');
      }
      expect(
        refused(
          await exchange(world.url, AGENT, {
            subject_token: body.access_token,
            subject_token_type: 'urn:x',
          }),
        ),
      ).toBe('400 invalid_request');
      expect(refused(await exchange(world.url, AGENT, {}))).toBe('400 invalid_request');

      const derived = await exchange(world.url, AGENT, { subject_token: body.access_token });
      expect((await introspect(world.url, derived.body.access_token, AGENT)).body.active).toBe(
        true,
      );
      await post(`${world.url}/revoke`, { client_id: CLI_CLIENT_ID, token: body.refresh_token });
      expect(refused(await exchange(world.url, AGENT, { subject_token: body.access_token }))).toBe(
        '400 invalid_grant',
      );
      // What was made of it has ended with it.
      expect((await introspect(world.url, derived.body.access_token, AGENT)).body).toEqual({
        active: false,
      });
      expect(
        refused(await exchange(world.url, AGENT, { subject_token: derived.body.access_token })),
      ).toBe('400 invalid_grant');
    },
  );

  it('a chain of delegations has an end, and a disabled user delegates nothing', async () => {
    const { access_token: first, refresh_token: rest } = await login(world, { person: ada });
    let token = first;
    for (let hop = 1; hop <= 8; hop++)
      token = (await exchange(world.url, AGENT, { subject_token: token })).body.access_token;
    expect(refused(await exchange(world.url, AGENT, { subject_token: token }))).toBe(
      '400 invalid_request',
    );
    await new Users(world.db).setDisabled('usr_ada', true);
    expect(refused(await exchange(world.url, AGENT, { subject_token: first }))).toBe(
      '400 invalid_grant',
    );
    expect(refused(await refresh(world.url, rest))).toBe('400 invalid_grant');
    await new Users(world.db).setDisabled('usr_ada', false);
  });
});

describe("a CI system's identity token", () => {
  /** A system of its own on a socket of its own: discovery, keys, tokens. */
  let ci: {
    url: string;
    requests: string[];
    key: KeyObject;
    close: () => void;
    keys: object[];
    issuer: string | undefined;
  };
  beforeAll(async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const requests: string[] = [];
    const server = createServer((request, response) => {
      requests.push(request.url ?? '');
      const body = request.url?.endsWith('/jwks')
        ? { keys: ci.keys }
        : { issuer: ci.issuer ?? ci.url, jwks_uri: `${ci.url}/jwks` };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
    const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'ci-1', use: 'sig' }];
    ci = { url, requests, key: privateKey, keys, issuer: undefined, close: () => server.close() };
    const trust: Omit<NewTrust, 'id' | 'claims'> = {
      issuer: url,
      audience: world.url,
      clientId: 'ci-acme',
      tenant: 'acme',
      scopes: ['read:sandbox', 'exec:sandbox'],
    };
    const rows = new WorkloadTrust(world.db);
    await rows.add({
      ...trust,
      id: 'main',
      claims: { repository: 'acme/app', ref: 'refs/heads/main' },
    });
    await rows.add({ ...trust, id: 'everybody', audience: 'everybody', claims: {} });
  });
  afterAll(() => ci.close());

  const now = () => Math.floor(Date.now() / 1000);
  const claims = (changes: object = {}) => ({
    iss: ci.url,
    sub: 'repo:acme/app',
    aud: world.url,
    iat: now(),
    exp: now() + 300,
    repository: 'acme/app',
    ref: 'refs/heads/main',
    ...changes,
  });
  const token = (changes: object = {}, header: object = {}) =>
    jwt({ alg: 'RS256', typ: 'JWT', kid: 'ci-1', ...header }, claims(changes), rs256(ci.key));
  const ask = (subjectToken: string, fields = {}) =>
    exchange(
      world.url,
      { clientId: CLI_CLIENT_ID },
      { subject_token: subjectToken, subject_token_type: ID_TOKEN, ...fields },
    );

  it('becomes the service principal its rule names, without any secret', async () => {
    const answer = await ask(token());
    expect(answer.status).toBe(200);
    const made = claimsOf(answer.body.access_token);
    expect(parse(accessClaims, made, 'INTERNAL', '').ok).toBe(true);
    expect(made).toMatchObject({
      sub: 'ci-acme',
      client_id: 'ci-acme',
      principal: 'service',
      tenant: 'acme',
      scope: 'read:sandbox exec:sandbox',
      aud: AUDIENCE,
    });
    expect(made.act).toBeUndefined();
    expect(claimsOf((await ask(token(), { scope: 'read:sandbox' })).body.access_token).scope).toBe(
      'read:sandbox',
    );
    expect(refused(await ask(token(), { scope: 'read:sandbox attach:sandbox' }))).toBe(
      '400 invalid_scope',
    );
  });

  it('is refused when anything of it is not as the rule says', async () => {
    const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    const cases: readonly [string, string][] = [
      ['another repository', token({ repository: 'evil/app' })],
      ['another branch', token({ ref: 'refs/heads/evil' })],
      ['a list in place of a text', token({ repository: ['acme/app'] })],
      ['no repository', token({ repository: undefined })],
      ['another audience', token({ aud: 'https://elsewhere.example' })],
      ['a rule without claims trusts nobody', token({ aud: 'everybody' })],
      ['expired', token({ exp: now() - 120 })],
      ['no end', token({ exp: undefined })],
      ['from the future', token({ iat: now() + 600 })],
      ['not yet', token({ nbf: now() + 600 })],
      ['another issuer', token({ iss: 'https://elsewhere.example' })],
      ['the issuer with a slash', token({ iss: `${ci.url}/` })],
      ['another key', jwt({ alg: 'RS256', kid: 'ci-1' }, claims(), rs256(stranger))],
      ['an unknown key', token({}, { kid: 'ci-2' })],
      ['alg none', jwt({ alg: 'none', kid: 'ci-1' }, claims(), () => Buffer.alloc(0))],
      [
        'HS256',
        jwt({ alg: 'HS256', kid: 'ci-1' }, claims(), (data) =>
          createHmac('sha256', 'ci-1').update(data).digest(),
        ),
      ],
    ];
    for (const [name, bad] of cases)
      expect(refused(await ask(bad)), name).toBe('400 invalid_grant');
    expect(refused(await ask('noise'))).toBe('400 invalid_request');
    for (const header of [
      { typ: 'at+jwt' },
      { typ: 'AT+JWT' },
      { typ: 'application/at+jwt' },
      { typ: 'Application/At+Jwt' },
      { typ: 7 },
      { kid: 1 },
      { kid: null },
    ]) {
      const answer = refused(await ask(token({}, header)));
      expect(answer, JSON.stringify(header)).toBe('400 invalid_request');
    }
    // Keys and discovery were asked for once, and once more for the key nobody knew.
    expect(ci.requests.length).toBeLessThanOrEqual(4);
  });

  it('what it becomes ends no later than it does', async () => {
    const exp = now() + 40;
    const { body } = await ask(token({ exp }));
    expect(claimsOf(body.access_token).exp).toBe(exp);
    expect(body.expires_in).toBeLessThanOrEqual(40);
    expect(refused(await ask(token({ exp: now() - 1 })))).toBe('400 invalid_grant');
  });

  it('what it became, and what was made of that, ends with the rule that let it in', async () => {
    const rows = new WorkloadTrust(world.db);
    const claims = { repository: 'acme/gone' };
    const rule = { id: 'removed', issuer: ci.url, audience: world.url, claims } as const;
    await rows.add({ ...rule, clientId: 'ci-gone', tenant: 'default', scopes: ['read:sandbox'] });
    const { access_token: own } = (await ask(token(claims))).body;
    const made = await exchange(world.url, AGENT, { subject_token: own });
    expect((await introspect(world.url, made.body.access_token, AGENT)).body.active).toBe(true);
    await rows.remove('removed');
    for (const ended of [own, made.body.access_token]) {
      expect((await introspect(world.url, ended, AGENT)).body).toEqual({ active: false });
      expect(refused(await exchange(world.url, AGENT, { subject_token: ended }))).toBe(
        '400 invalid_grant',
      );
    }
  });

  it('a row of the client it becomes limits it, and ends it', async () => {
    await world.addClient({
      clientId: 'ci-acme',
      tenant: 'acme',
      secretHash: hashClientSecret(new Secret('unused-secret')),
      grants: [],
      allowedScopes: ['read:sandbox'],
    });
    expect(claimsOf((await ask(token())).body.access_token).scope).toBe('read:sandbox');
    await new Clients(world.db).setDisabled('ci-acme', true);
    expect(refused(await ask(token()))).toBe('400 invalid_grant');
  });

  it('an issuer that does not answer as it should lets nobody in', async () => {
    await new WorkloadTrust(world.db).add({
      id: 'gone',
      issuer: 'http://127.0.0.1:9',
      audience: world.url,
      claims: { repository: 'acme/app' },
      clientId: 'x',
      tenant: 'acme',
      scopes: [],
    });
    const gone = await ask(token({ iss: 'http://127.0.0.1:9' }));
    expect(gone.body.error).toBe('temporarily_unavailable');
    await using fresh = await createWorld();
    await new WorkloadTrust(fresh.db).add({
      id: 'liar',
      issuer: ci.url,
      audience: fresh.url,
      claims: { repository: 'acme/app' },
      clientId: 'x',
      tenant: 'acme',
      scopes: [],
    });
    ci.issuer = 'https://somebody-else.example';
    const liar = await exchange(
      fresh.url,
      { clientId: CLI_CLIENT_ID },
      { subject_token: token({ aud: fresh.url }), subject_token_type: ID_TOKEN },
    );
    ci.issuer = undefined;
    expect(liar.body.error).toBe('temporarily_unavailable');
  });
});
