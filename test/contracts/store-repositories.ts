/** What every engine promises about the issuer's tables: single use, pace, limits and an audit nobody rewrites. */
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/secret.js';
import { Attempts } from '../../src/server/store/attempts.js';
import { Audit } from '../../src/server/store/audit.js';
import { Clients } from '../../src/server/store/clients.js';
import { IssuerKeys } from '../../src/server/store/keys.js';
import { migrate } from '../../src/server/store/migrations.js';
import { OidcPayloads } from '../../src/server/store/oidc-payloads.js';
import { Users } from '../../src/server/store/users.js';
import { WorkloadTrust } from '../../src/server/store/workload-trust.js';
import { type StoreKind, useReplicas } from './store.js';

export function describeRepositories(kind: StoreKind): void {
  describe(`the issuer's tables on ${kind.name}`, () => {
    const { at } = useReplicas(kind, migrate);
    const payloads = (index = 0) => new OidcPayloads(at(index));
    const attempts = (index = 0) => new Attempts(at(index));
    const times = (n: number) => Array.from({ length: n }, (_, index) => index);

    describe('payloads', () => {
      it('a grant is found by its account while it lives, with when it was used, and ended whole', async () => {
        const store = payloads();
        const grant = (id: string, uid: string, expiresInMs: number) =>
          store.upsert({ kind: 'Grant', id, uid, payload: { accountId: uid }, expiresInMs });
        await grant('login-1', 'usr_a', 60_000);
        await grant('login-2', 'usr_a', 60_000);
        await grant('login-over', 'usr_a', -1);
        await grant('login-other', 'usr_b', 60_000);
        const token = { kind: 'RefreshToken', payload: {}, expiresInMs: 60_000 };
        await store.upsert({ ...token, id: 'r1', grantId: 'login-1' });
        await store.upsert({ ...token, id: 'r2', grantId: 'login-other' });
        await store.upsert({ ...token, kind: 'DeviceCode', id: 'd2', grantId: 'login-2' });
        const listed = async (at = 0) =>
          (await payloads(at).listByUid('Grant', 'usr_a', 10)).map(({ id }) => id).sort();
        expect(await listed(1)).toEqual(['login-1', 'login-2']);
        expect(await store.listByUid('Grant', 'usr_a', 1)).toHaveLength(1);
        const used = await store.lastMade('usr_a', ['RefreshToken', 'AccessToken']);
        expect([...used.keys()]).toEqual(['login-1']);
        expect(Math.abs((used.get('login-1') ?? 0) - (await at(0).now()))).toBeLessThan(10_000);
        expect(await store.endGrant('login-1')).toBe(true);
        expect(await payloads(1).endGrant('login-1')).toBe(false);
        expect(await store.find('RefreshToken', 'r1')).toBe(undefined);
        expect(await store.find('RefreshToken', 'r2')).toBeDefined();
        expect(await listed()).toEqual(['login-2']);
        const users = new Users(at(0));
        await users.add({ id: 'usr_a', tenant: 'default', name: 'removed', scopes: [] });
        expect(await users.remove('usr_a')).toBe(true);
        expect(await users.remove('usr_a')).toBe(false);
        expect(await listed()).toEqual([]);
        expect(await store.find('DeviceCode', 'd2')).toBe(undefined);
        expect(await store.find('Grant', 'login-other')).toBeDefined();
        expect(await store.find('Grant', 'login-over')).toBe(undefined);
      });

      it('of 20 who consume a code on two replicas exactly one does, 50 rounds', async () => {
        for (const round of times(50)) {
          const id = `once-${round}`;
          await payloads().upsert({ kind: 'DeviceCode', id, payload: {} });
          const outcomes = await Promise.all(
            times(20).map((index) => payloads(index).consume('DeviceCode', id)),
          );
          expect(outcomes.filter((it) => it.kind === 'consumed')).toHaveLength(1);
          expect(outcomes.filter((it) => it.kind === 'spent')).toHaveLength(19);
        }
      });

      it('what is consumed stays consumed when the same id is written again', async () => {
        const key = { kind: 'RefreshToken', id: 'again' };
        await payloads().upsert({ ...key, payload: { version: 1 } });
        await payloads().consume(key.kind, key.id);
        await payloads(1).upsert({ ...key, payload: { version: 2 } });
        expect(await payloads().find(key.kind, key.id)).toMatchObject({
          payload: { version: 2 },
          consumedAtMs: expect.any(Number),
        });
        expect(await payloads().consume(key.kind, key.id)).toEqual({ kind: 'spent' });
        expect(await payloads().consume(key.kind, 'never')).toEqual({ kind: 'missing' });
      });

      it('a payload is found by id, user code and uid, in its kind alone', async () => {
        const payload = { nested: { list: [1, 'two', null], text: 'a\0b' } };
        const stored = { kind: 'DeviceCode', id: 'f1', userCode: 'BCDF', uid: 'u1', payload };
        await payloads().upsert({ ...stored, grantId: 'g1', expiresInMs: 60_000 });
        const found = { ...stored, grantId: 'g1', isExpired: false, consumedAtMs: undefined };
        expect(await payloads(1).find('DeviceCode', 'f1')).toMatchObject(found);
        expect(await payloads(1).findByUserCode('DeviceCode', 'BCDF')).toMatchObject(found);
        expect(await payloads(1).findByUid('DeviceCode', 'u1')).toMatchObject(found);
        expect(await payloads().find('Session', 'f1')).toBeUndefined();
        expect(await payloads().findByUid('Session', 'u1')).toBeUndefined();
        for (const hostile of ['', '\0', "' OR ''='", '%']) {
          expect(await payloads().find('DeviceCode', hostile)).toBeUndefined();
          expect(await payloads().findByUserCode('DeviceCode', hostile)).toBeUndefined();
        }
        await payloads().destroy('DeviceCode', 'f1');
        expect(await payloads().find('DeviceCode', 'f1')).toBeUndefined();
      });

      it('ending a grant ends everything that hangs on it, and nothing else', async () => {
        for (const [id, grantId] of [
          ['a', 'g-end'],
          ['b', 'g-end'],
          ['c', 'g-stay'],
        ] as const) {
          await payloads().upsert({ kind: `Kind${id}`, id, grantId, payload: {} });
        }
        expect(await payloads(1).revokeByGrantId('g-end')).toBe(2);
        expect(await payloads().find('Kinda', 'a')).toBeUndefined();
        expect(await payloads().find('Kindc', 'c')).toBeDefined();
      });

      it('expired payloads are found as such until they are swept, a bounded number at a time', async () => {
        for (const index of times(5)) {
          await payloads().upsert({
            kind: 'Old',
            id: `o${index}`,
            payload: {},
            expiresInMs: -1_000,
          });
        }
        await payloads().upsert({ kind: 'Old', id: 'young', payload: {}, expiresInMs: 60_000 });
        await payloads().upsert({ kind: 'Old', id: 'ageless', payload: {} });
        expect((await payloads().find('Old', 'o1'))?.isExpired).toBe(true);
        expect(await payloads().sweepExpired(10, 3_600_000)).toBe(0);
        expect(await payloads().sweepExpired(3, 0)).toBe(3);
        expect(await payloads().sweepExpired(3, 0)).toBe(2);
        expect(await payloads().sweepExpired(3, 0)).toBe(0);
        expect((await payloads().find('Old', 'young'))?.isExpired).toBe(false);
        expect((await payloads().find('Old', 'ageless'))?.isExpired).toBe(false);
      });
    });

    describe('the pace of polling', () => {
      const rule = { gapMs: 5_000, growMs: 5_000, toleranceMs: 0 };
      const poll = (id: string, index = 0) => payloads(index).poll('DeviceCode', id, rule);
      /** Time passes: the last poll was that much longer ago. */
      const pass = (id: string, ms: number) =>
        at(0).run('UPDATE oidc_payloads SET last_poll_at = last_poll_at - ? WHERE id = ?', [
          ms,
          id,
        ]);
      const start = (id: string) => payloads().upsert({ kind: 'DeviceCode', id, payload: {} });

      it('an early poll makes the gap longer for good, and does not move its beginning', async () => {
        await start('p1');
        expect(await poll('p1')).toEqual({ kind: 'due' });
        await pass('p1', 1_000);
        expect(await poll('p1', 1)).toEqual({ kind: 'early', gapMs: 10_000 });
        await pass('p1', 1_000);
        expect(await poll('p1')).toEqual({ kind: 'early', gapMs: 15_000 });
        // 2 s have passed since the poll that counted: 13 more are due, not 15.
        await pass('p1', 13_000);
        expect(await poll('p1', 1)).toEqual({ kind: 'due' });
        await pass('p1', 10_000);
        expect(await poll('p1')).toEqual({ kind: 'early', gapMs: 20_000 });
      });

      it('approving, which writes the code again, does not forget the pace', async () => {
        await start('p2');
        await poll('p2');
        expect(await poll('p2')).toEqual({ kind: 'early', gapMs: 10_000 });
        await start('p2');
        expect(await poll('p2')).toEqual({ kind: 'early', gapMs: 15_000 });
      });

      it('one login does not slow another, and an unknown code is missing', async () => {
        await start('p3');
        await start('p4');
        await poll('p3');
        await poll('p3');
        expect(await poll('p4')).toEqual({ kind: 'due' });
        expect(await poll('p-none')).toEqual({ kind: 'missing' });
      });

      it('of ten polls at once on two replicas one is due', async () => {
        await start('p5');
        const polls = await Promise.all(times(10).map((index) => poll('p5', index)));
        expect(polls.filter(({ kind }) => kind === 'due')).toHaveLength(1);
        expect(await poll('p5')).toEqual({ kind: 'early', gapMs: 55_000 });
      });

      it('a poll within the tolerance is due', async () => {
        await start('p6');
        await poll('p6');
        await pass('p6', 4_800);
        const lenient = { ...rule, toleranceMs: 250 };
        expect(await payloads().poll('DeviceCode', 'p6', lenient)).toEqual({ kind: 'due' });
      });
    });

    describe('attempts', () => {
      it('of 100 at once on two replicas exactly the limit is taken, with each count once', async () => {
        const taken = await Promise.all(
          times(100).map((index) => attempts(index).take('race', 7, 60_000)),
        );
        const counts = taken.flatMap((it) => (it.kind === 'taken' ? [it.count] : []));
        expect(counts.sort()).toEqual([1, 2, 3, 4, 5, 6, 7]);
        for (const it of taken) {
          if (it.kind === 'limited') {
            expect(it.retryAfterMs).toBeGreaterThan(50_000);
            expect(it.retryAfterMs).toBeLessThanOrEqual(60_000);
          }
        }
      });

      it('insisting does not lengthen the wait, and a new window begins afresh', async () => {
        for (const _ of times(3)) await attempts().take('window', 2, 60_000);
        const endOf = async () =>
          (await at(0).query('SELECT ends_at FROM attempts WHERE bucket = ?', ['window']))[0]?.[
            'ends_at'
          ];
        const end = await endOf();
        expect((await attempts(1).take('window', 2, 60_000)).kind).toBe('limited');
        expect(await endOf()).toBe(end);
        // The window passes.
        await at(0).run('UPDATE attempts SET ends_at = ends_at - 60000 WHERE bucket = ?', [
          'window',
        ]);
        expect(await attempts().take('window', 2, 60_000)).toEqual({ kind: 'taken', count: 1 });
      });

      it('buckets do not know of each other; a limit of 0 takes nothing; what is given back is free', async () => {
        expect(await attempts().take('zero', 0, 1_000)).toEqual({
          kind: 'limited',
          retryAfterMs: 1_000,
        });
        expect((await attempts().take('one', 1, 60_000)).kind).toBe('taken');
        expect((await attempts().take('other', 1, 60_000)).kind).toBe('taken');
        expect((await attempts().take('one', 1, 60_000)).kind).toBe('limited');
        await attempts().giveBack('one');
        await attempts().giveBack('never');
        expect(await attempts().take('one', 1, 60_000)).toEqual({ kind: 'taken', count: 1 });
      });

      it('windows that ended are swept, a bounded number at a time', async () => {
        for (const index of times(4)) await attempts().take(`swept-${index}`, 1, -1);
        expect(await attempts().sweepExpired(3)).toBe(3);
        expect(await attempts().sweepExpired(3)).toBe(1);
        expect((await attempts().take('one', 1, 60_000)).kind).toBe('limited');
      });
    });

    describe('the audit', () => {
      it('rewriting it fails, whoever owns the table, and changes nothing', async () => {
        const audit = new Audit(at(0));
        await audit.record({ event: 'kept', subject: 'ann', details: { n: 1 } });
        const all = () => at(1).query('SELECT * FROM audit ORDER BY id');
        const before = await all();
        const values = "(id, at, event, details) VALUES (1, 1, 'forged', '{}')";
        const conflict = 'ON CONFLICT (id) DO UPDATE SET event = excluded.event';
        const rewrites = {
          both: [
            "UPDATE audit SET event = 'forged'",
            'UPDATE audit SET event = event WHERE id = 1',
            'DELETE FROM audit',
            'DELETE FROM audit WHERE id = 1',
          ],
          sqlite: [
            `INSERT INTO audit ${values} ${conflict}`,
            `INSERT OR REPLACE INTO audit ${values}`,
            `REPLACE INTO audit ${values}`,
          ],
          postgres: [
            'TRUNCATE audit',
            'TRUNCATE audit RESTART IDENTITY CASCADE',
            `INSERT INTO audit ${values.replace(' VALUES', ' OVERRIDING SYSTEM VALUE VALUES')} ${conflict}`,
          ],
        };
        for (const sql of [...rewrites.both, ...rewrites[at(0).engine]]) {
          await expect(at(0).run(sql), sql).rejects.toMatchObject({
            internal: expect.stringContaining('append-only'),
          });
          expect(await all()).toEqual(before);
        }
      });

      it('it is read in order, by filter and by page, whatever hostile names it tells of', async () => {
        const audit = new Audit(at(0));
        const record = {
          event: 'paged',
          tenant: 't',
          actor: 'agent',
          jti: 'tok_1',
          threadId: 'thr_1',
        };
        for (const index of times(5)) {
          await audit.record({
            ...record,
            subject: index % 2 ? 'odd' : 'even\0',
            details: { index },
          });
        }
        const page = await audit.list({ event: 'paged' }, { limit: 3 });
        expect(page.entries.map(({ details }) => details)).toEqual([
          { index: 0 },
          { index: 1 },
          { index: 2 },
        ]);
        expect(page.entries[0]).toMatchObject({ ...record, subject: 'even\ufffd' });
        const rest = await audit.list({ event: 'paged' }, { limit: 3, after: page.next });
        expect(rest.entries).toHaveLength(2);
        expect(rest.next).toBeUndefined();
        const odd = await audit.list({ event: 'paged', subject: 'odd', tenant: 't' }, { limit: 9 });
        expect(odd.entries).toHaveLength(2);
        const nowMs = await at(0).now();
        expect((await audit.list({ untilMs: nowMs - 600_000 }, { limit: 9 })).entries).toEqual([]);
        expect((await audit.list({ sinceMs: nowMs + 600_000 }, { limit: 9 })).entries).toEqual([]);
        expect((await audit.list({ threadId: 'thr_2' }, { limit: 9 })).entries).toEqual([]);
      });

      it('a record made in a transaction falls with it', async () => {
        const undone = at(0).transaction(async (tx) => {
          await new Audit(tx).record({ event: 'undone' });
          throw new Error('no');
        });
        await expect(undone).rejects.toThrow('no');
        expect((await new Audit(at(1)).list({ event: 'undone' }, { limit: 1 })).entries).toEqual(
          [],
        );
      });
    });

    describe('users, clients, keys and trust', () => {
      it('a user name is unique in its tenant and an upstream identity everywhere', async () => {
        const users = new Users(at(0));
        const ann = { id: 'u1', tenant: 't1', name: 'ann', scopes: ['read:sandbox'] } as const;
        const upstream = { issuer: 'https://idp', subject: '7' };
        expect(await users.add({ ...ann, passwordHash: new Secret('hash') })).toBe('added');
        expect(await users.add({ ...ann, id: 'u2' })).toBe('taken');
        expect(await users.add({ ...ann, id: 'u2', tenant: 't2', upstream })).toBe('added');
        expect(await users.add({ ...ann, id: 'u3', name: 'bob', upstream })).toBe('taken');
        const race = await Promise.all(
          times(10).map((index) =>
            new Users(at(index)).add({ ...ann, id: `r${index}`, name: 'race' }),
          ),
        );
        expect(race.filter((it) => it === 'added')).toHaveLength(1);
        const found = await users.findByName('t1', 'ann');
        expect(found).toMatchObject({ ...ann, upstream: undefined, disabledAtMs: undefined });
        expect(found?.passwordHash?.reveal()).toBe('hash');
        expect(JSON.stringify(found)).not.toContain('"hash"');
        expect((await users.findByUpstream(upstream))?.id).toBe('u2');
        expect(await users.findByName('t1', 'a\0nn')).toBeUndefined();
        expect((await users.list('t1', 10)).map(({ name }) => name)).toEqual(['ann', 'race']);
        expect((await users.list('t1', 10, 'ann')).map(({ name }) => name)).toEqual(['race']);
      });

      it('a disabled user stays so since then, until enabled', async () => {
        const users = new Users(at(0));
        await users.add({ id: 'd1', tenant: 't', name: 'dora', scopes: [] });
        expect(await users.setDisabled('d1', true)).toBe(true);
        const since = (await users.find('d1'))?.disabledAtMs;
        expect(since).toBeGreaterThan(0);
        await users.setDisabled('d1', true);
        expect((await users.find('d1'))?.disabledAtMs).toBe(since);
        await users.setDisabled('d1', false);
        expect((await users.find('d1'))?.disabledAtMs).toBeUndefined();
        expect(await users.setDisabled('nobody', true)).toBe(false);
        expect(await users.setPasswordHash('d1', new Secret('new'))).toBe(true);
        expect(await users.setScopes('d1', ['exec:sandbox'])).toBe(true);
        expect(await users.find('d1')).toMatchObject({ scopes: ['exec:sandbox'] });
        expect((await users.find('d1'))?.passwordHash?.reveal()).toBe('new');
      });

      it('a client comes back as it was added; a public one can have no secret', async () => {
        const clients = new Clients(at(0));
        const client = {
          clientId: 'ci',
          tenant: 't',
          name: 'CI <b>',
          kind: 'confidential',
          jwks: { keys: [{ kty: 'RSA' }] },
          redirectUris: ['http://127.0.0.1/cb'],
          grants: ['client_credentials'],
          allowedScopes: ['read:sandbox', 'exec:sandbox'],
        } as const;
        expect(await clients.add(client)).toBe('added');
        expect(await clients.add(client)).toBe('taken');
        expect(await clients.find('ci')).toMatchObject(client);
        expect(await clients.find('c\0i')).toBeUndefined();
        expect(await clients.setSecretHash('ci', new Secret('hash'))).toBe(true);
        expect((await clients.find('ci'))?.secretHash?.reveal()).toBe('hash');
        expect(await clients.setAllowedScopes('ci', [])).toBe(true);
        expect(await clients.setDisabled('ci', true)).toBe(true);
        expect(await clients.find('ci')).toMatchObject({
          allowedScopes: [],
          disabledAtMs: expect.any(Number),
        });
        const open = { ...client, clientId: 'cli', kind: 'public', jwks: undefined } as const;
        await expect(clients.add({ ...open, secretHash: new Secret('x') })).rejects.toThrow();
        expect(await clients.add(open)).toBe('added');
        expect(await clients.setSecretHash('cli', new Secret('x'))).toBe(false);
        expect((await clients.list(10)).map(({ clientId }) => clientId)).toEqual(['ci', 'cli']);
        expect((await clients.list(10, 'ci')).map(({ clientId }) => clientId)).toEqual(['cli']);
      });

      it('of replicas that start at once one makes the first key; rotating retires it', async () => {
        const key = (kid: string) =>
          ({ kid, purpose: 'signing', material: new Secret(`m-${kid}`) }) as const;
        const race = await Promise.all(
          times(8).map((index) => new IssuerKeys(at(index)).addFirst(key(`k${index}`))),
        );
        expect(race.filter((it) => it === 'added')).toHaveLength(1);
        const keys = new IssuerKeys(at(0));
        const [first] = await keys.list('signing');
        await keys.rotate(key('next'));
        const listed = await keys.list('signing');
        expect(listed.filter(({ retiredAtMs }) => retiredAtMs === undefined)).toMatchObject([
          { kid: 'next' },
        ]);
        expect(listed.map(({ kid }) => kid)).toContain(first?.kid);
        expect(listed[0]?.material.reveal()).toMatch(/^m-/);
        expect(await keys.list('cookie')).toEqual([]);
        expect(await keys.removeRetired('signing', 60_000)).toBe(0);
        expect(await keys.removeRetired('signing', -60_000)).toBe(1);
        expect(await keys.list('signing')).toHaveLength(1);
      });

      it('trust is found by the issuer as it is written', async () => {
        const trust = new WorkloadTrust(at(0));
        const row = {
          id: 'w1',
          issuer: 'https://ci.example',
          audience: 'ailsd',
          claims: { repository: 'a/b' },
          clientId: 'ci',
          tenant: 't',
          scopes: ['exec:sandbox'],
        } as const;
        expect(await trust.add(row)).toBe('added');
        expect(await trust.add(row)).toBe('taken');
        expect(await trust.listByIssuer('https://ci.example')).toMatchObject([row]);
        expect(await trust.listByIssuer('https://ci.example/')).toEqual([]);
        expect(await trust.list(10)).toHaveLength(1);
        expect(await trust.remove('w1')).toBe(true);
        expect(await trust.remove('w1')).toBe(false);
      });
    });
  });
}
