/** The database goes away: answers are right or say to come back, and nothing that was promised is lost. On a real PostgreSQL. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { openStore } from '../../../src/server/store/open-store.js';
import { proves } from '../../requirements.js';
import { type CuttingProxy, cuttingProxy } from '../../support/cutting-proxy.js';
import { eventually } from '../../support/eventually.js';
import { type PostgresServer, startPostgres } from '../../support/postgres.js';
import { newSeed, seededRandom } from '../../support/random.js';
import type { Answer } from '../../support/server.js';
import { type WholeServer, wholeServer } from '../../support/whole-server.js';
import { type FramesServer, framesServer } from '../relay/support/frames-server.js';

const SEED = newSeed();
const random = seededRandom(SEED);
const REQUESTS = 2_000;
const CUTS = 20;
const AT_ONCE = 16;
const SESSIONS = '/v1/sandbox/sessions';

const postgres = await startPostgres();

afterAll(async () => {
  if (postgres.kind === 'started') await postgres.server[Symbol.asyncDispose]();
});

if (postgres.kind === 'skipped')
  describe.skip(postgres.reason, () => it('skipped', () => undefined));
else whileAway(postgres.server);

interface Got {
  readonly status: number;
  readonly json: Answer | undefined;
}

/** What the server said was done. */
interface Promised {
  readonly released: Set<string>;
  readonly granted: Set<string>;
  readonly revoked: Set<string>;
}

function whileAway(database: PostgresServer): void {
  describe('while the database is away', () => {
    let direct: string;
    let proxy: CuttingProxy;
    let server: WholeServer;
    let frames: FramesServer;

    beforeAll(async () => {
      direct = await database.createDatabase();
      const url = new URL(direct);
      proxy = await cuttingProxy(Number(url.port));
      url.port = String(proxy.port);
      frames = await framesServer();
      server = await wholeServer({
        store: url.href,
        directStore: direct,
        file: { broker: { requests_per_minute: 0, address_requests_per_minute: 0 } },
      });
      server.provider.plan.endpoints = {
        httpUrl: `http://127.0.0.1:${frames.port}`,
        wsUrl: `ws://127.0.0.1:${frames.port}`,
      };
    });

    afterAll(async () => {
      proxy.freeze(false);
      await server[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await frames[Symbol.asyncDispose]();
    });

    async function call(method: string, path: string, body?: object): Promise<Got> {
      const reply = await fetch(`${server.url}${path}`, {
        method,
        headers: { Authorization: `Bearer ${server.token()}`, Prefer: 'wait=5' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      return { status: reply.status, json: text === '' ? undefined : JSON.parse(text) };
    }

    function ensure(thread: string): Promise<Got> {
      return call('POST', SESSIONS, { thread_id: thread, mode: 'ensure' });
    }

    async function statusOf(path: string): Promise<number> {
      return (await fetch(`${server.url}${path}`)).status;
    }

    const promised: Promised = { released: new Set(), granted: new Set(), revoked: new Set() };
    const wrong: string[] = [];
    const statuses = new Map<number, number>();
    let left = REQUESTS;

    function note(what: string, got: Got): Got {
      statuses.set(got.status, (statuses.get(got.status) ?? 0) + 1);
      left -= 1;
      const { code, retryable } = got.json?.['error'] ?? {};
      const isAway = got.status === 503 && retryable === true;
      const isRight = got.status < 300 || [404, 409, 410, 423].includes(got.status);
      if (!isAway && !isRight) wrong.push(`${what}: ${got.status} ${code}`);
      return got;
    }

    /** Makes a session, uses it, shares it, takes its token back, lets it go. */
    async function story(thread: string): Promise<void> {
      const made = note('ensure', await ensure(thread));
      if (made.status !== 200) return;
      const id: string = made.json?.['session_id'];
      const path = `${SESSIONS}/${id}`;
      note('look', await call('GET', path));
      note('list', await call('GET', '/v1/sandboxes?limit=5'));
      note('beat', await call('POST', `${path}/heartbeat`, {}));
      const asked = { grantee: { type: 'user', id: `usr_${thread}` }, capabilities: ['fs:ro'] };
      const grant = note('grant', await call('POST', `${path}/grants`, asked));
      if (grant.status === 201) promised.granted.add(grant.json?.['id']);
      const payload: string = made.json?.['token'].split('.')[1];
      const { jti } = JSON.parse(Buffer.from(payload, 'base64url').toString());
      const revoked = note('revoke', await call('POST', `${path}/revoke`, { jti }));
      if (revoked.status === 204) promised.revoked.add(jti);
      if (random() < 0.5) return;
      const gone = note('release', await call('DELETE', path));
      if (gone.status === 204) promised.released.add(id);
    }

    it(proves(
      `answers are right or 503, readiness follows, shells stay, and no release, grant or revocation is lost (seed ${SEED})`,
      'BR-08',
    ), async () => {
      const first = await ensure('thr_shell');
      const sandboxId: string = first.json?.['sandbox'].id;
      const shell = new WebSocket(
        `${server.url.replace('http', 'ws')}/v1/sandboxes/${sandboxId}/sessions/new`,
        { headers: { Authorization: `Bearer ${server.token()}` } },
      );
      await new Promise((resolve, reject) => shell.once('open', resolve).once('error', reject));
      let isShellOpen = true;
      shell.on('close', () => {
        isShellOpen = false;
      });
      let isOver = false;
      const health = (async () => {
        while (!isOver) {
          if ((await statusOf('/healthz')) !== 200) wrong.push('not healthy');
          await pause(50);
        }
      })();

      const cutting = (async () => {
        for (let cut = 0; cut < CUTS; cut++) {
          const due = left - REQUESTS / (CUTS + 2);
          while (left > due) await pause(5);
          proxy.cut(random() < 0.5 ? 'rst' : 'fin');
        }
      })();
      const worker = async (name: number): Promise<void> => {
        for (let turn = 0; left > 0; turn++) await story(`thr_${name}_${turn}`);
      };
      await Promise.all([cutting, ...Array.from({ length: AT_ONCE }, (_, at) => worker(at))]);

      // From here on nothing comes back at all.
      const begin = performance.now();
      proxy.freeze(true);
      const stuck = Array.from({ length: 20 }, (_, at) => ensure(`thr_stuck_${at}`));
      expect(await statusOf('/readyz')).toBe(503);
      expect(performance.now() - begin).toBeLessThan(2_000);
      await pause(begin + 5_000 - performance.now());
      proxy.freeze(false);
      proxy.cut('rst');
      const back = performance.now();
      await eventually(async () => (await statusOf('/readyz')) === 200);
      expect(performance.now() - back).toBeLessThan(5_000);
      for (const got of await Promise.all(stuck)) note('stuck', got);
      isOver = true;
      await health;

      expect(wrong).toEqual([]);
      expect(proxy.cuts).toBeGreaterThanOrEqual(CUTS);
      expect(statuses.get(200) ?? 0, JSON.stringify([...statuses])).toBeGreaterThan(REQUESTS / 4);
      expect(isShellOpen).toBe(true);
      const heard = frames.messages.length;
      shell.send('still here');
      await eventually(() => frames.messages.length > heard);
      shell.terminate();
      await checkPromises();
    }, 240_000);

    async function checkPromises(): Promise<void> {
      await using db = await openStore(direct);
      const idsOf = async (sql: string) =>
        new Set((await db.query(sql)).map((row) => String(row['id'])));
      const released = await idsOf('SELECT id FROM sessions WHERE ended_at IS NOT NULL');
      const granted = await idsOf('SELECT id FROM grants');
      const ended = await idsOf('SELECT jti AS id FROM issued_tokens WHERE ends_at IS NOT NULL');
      expect(promised.released.size).toBeGreaterThan(20);
      for (const id of promised.released) expect(released).toContain(id);
      for (const id of promised.granted) expect(granted).toContain(id);
      for (const id of promised.revoked) expect(ended).toContain(id);
    }
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
