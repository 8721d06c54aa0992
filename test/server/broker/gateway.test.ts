/** Invites at the gateway: who they let in, once, as whom, and where. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Secret } from '../../../src/base/secret.js';
import { signInvite } from '../../../src/server/tokens/invite.js';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import { ask, ensure } from './support/client.js';
import { openCodeWorld } from './support/code-world.js';

const SECRET = new Secret('a secret that two servers share, of some length');

interface Seen {
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into frames as any client would
  readonly frames: any[];
  readonly code: number;
  readonly reason: string;
}

/** Connects, sends what it is given once it is open, and gives all that came until the end. */
function visit(
  url: string,
  path: string,
  send: readonly object[] = [],
  until?: RegExp,
): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`);
    const frames: unknown[] = [];
    let text = '';
    socket.on('open', () => {
      for (const one of send) socket.send(JSON.stringify(one));
    });
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data));
      frames.push(frame);
      if (frame.type === 'stdout') text += frame.data;
      if (until?.test(text)) socket.close(1000);
    });
    socket.on('error', reject);
    socket.on('close', (code, reason) => resolve({ frames, code, reason: String(reason) }));
  });
}

function executeToken(seconds = 60, sub = 'run_1', at = Date.now()): string {
  const iat = Math.floor(at / 1000);
  return signInvite(SECRET, { sub, scopes: 'execution', iat, exp: iat + seconds }).reveal();
}

let serial = 0;
function computerToken(room: string, elevated?: boolean): string {
  const iat = Math.floor(Date.now() / 1000);
  serial += 1;
  const claims = { sub: 'user_7', room, iat, exp: iat + 60, jti: `tok_${serial}` };
  return signInvite(SECRET, { ...claims, ...(elevated && { elevated }) } as never).reveal();
}

describe('the gateway', () => {
  it(
    proves('takes each invite once, as its sub, in its room, with no more than it allows', 'TK-06'),
    async () => {
      await using world = await openCodeWorld({ inviteSecret: SECRET });
      const url = world.url();
      const code = {
        code: 'echo ran as $USER; echo oh >&2; exit 3',
        language: 'bash',
        user_id: 'user_9',
        sub: 'root',
      };
      const refused = async (path: string, reason: string) =>
        expect(await visit(url, path, [code])).toMatchObject({ frames: [], code: 1008, reason });
      await refused('/execute', 'Missing token');
      await refused('/execute?token=', 'Missing token');
      await refused(
        `/execute?token=${executeToken(60, 'run_1', Date.now() - 120_000)}`,
        'Token expired',
      );
      await refused('/execute?token=eyJhbGciOiJIUzI1NiJ9.e30.x', 'Invalid token');
      await refused(`/execute?token=${computerToken('thr_room')}`, 'Invalid token');
      await refused(`/execute?token=${executeToken()}&token=${executeToken()}`, 'Invalid token');

      // 20 at once, one runs.
      const invite = executeToken(60, 'run_once');
      const all = await Promise.all(
        Array.from({ length: 20 }, () => visit(url, `/execute?token=${invite}`, [code])),
      );
      const ran = all.filter(({ code: end }) => end === 1000);
      expect(ran).toHaveLength(1);
      const others = all.filter(
        ({ code: end, reason }) => end === 1008 && reason === 'Invalid token',
      );
      expect(others).toHaveLength(19);
      const [{ frames } = { frames: [] }] = ran;
      expect(frames.at(-1)).toMatchObject({
        type: 'result',
        ok: false,
        exit_status: 'error',
        stderr: 'oh\n',
      });
      expect(
        frames
          .filter(({ type }) => type === 'stderr')
          .map(({ data }) => data)
          .join(''),
      ).toBe('oh\n');
      const rows = await world.rows();
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({ agent_id: 'run_once', via: 'execute', exit_status: 'error' });
      const subs = await world.db.query('SELECT DISTINCT subject FROM issued_tokens');
      expect(subs).toEqual([{ subject: 'run_once' }]);

      // No code: nothing runs.
      const empty = await visit(url, `/execute?token=${executeToken(60, 'run_2')}`, [
        { language: 'bash' },
      ]);
      expect(empty.frames).toMatchObject([
        { type: 'error', code: 'INVALID_REQUEST', field: 'code' },
      ]);
      expect(await world.rows()).toHaveLength(1);

      // Rooms.
      await ensure(url, 'thr_room', { as: { sub: 'user_7' } });
      const forbidden = 'Unauthorized Room Access';
      const token = () => `token=${computerToken('thr_room')}`;
      await refused(`/computer?${token()}&room=thr_other`, forbidden);
      await refused(`/computer?${token()}`, forbidden);
      await refused(`/computer?${token()}&room=thr_room&room=thr_room`, forbidden);
      await refused(`/computer?${token()}&room=*`, forbidden);
      await refused(`/computer?token=${computerToken('*')}&room=*`, forbidden);
      const logged = await world.db.query(
        "SELECT subject FROM audit WHERE event = 'invite.refused'",
      );
      expect(logged).toHaveLength(5);
      expect(new Set(logged.map(({ subject }) => subject))).toEqual(new Set(['user_7']));
      const shell = async (query: string) => {
        const start = {
          type: 'start',
          shell_id: 'new',
          command: ['sh', '-c', 'echo "<$AILSD_ELEVATED>"; sleep 30'],
          env: { AILSD_ELEVATED: 'forged' },
        };
        const { frames: seen } = await visit(url, `/computer?${query}`, [start], /<.*>/);
        return /<.*>/.exec(
          seen
            .filter(({ type }) => type === 'stdout')
            .map(({ data }) => data)
            .join(''),
        )?.[0];
      };
      expect(await shell(`${token()}&room=thr_room`)).toBe('<>');
      for (const elevated of ['true', '1', 'TRUE'])
        expect(await shell(`${token()}&room=thr_room&elevated=${elevated}`)).toBe('<>');
      const allowed = `token=${computerToken('*', true)}&room=thr_room`;
      expect(await shell(`${allowed}&elevated=true`)).toBe('<1>');
      // A visit's row is written when it is over, which the visitor does not see.
      const computer = async () => (await world.rows()).filter(({ via }) => via === 'computer');
      await eventually(async () => (await computer()).length === 5);
      const visits = await computer();
      expect(new Set(visits.map(({ agent_id, owner }) => `${agent_id} ${owner}`))).toEqual(
        new Set(['user_7 user_7']),
      );
      expect(world.log.join('').includes('token=')).toBe(false);
    },
  );

  it('runs an invite that was made here in its session, by the caps of whoever asked for it', async () => {
    await using world = await openCodeWorld();
    const url = world.url();
    const { json: session } = await ensure(url, 'thr_code');
    const invite = async () => {
      const path = `/v1/sandbox/sessions/${session.session_id}/invites`;
      const { json } = await ask(url, 'POST', path, { body: { endpoint: 'execute' } });
      return new URL(json.url).search || `?token=${json.token}`;
    };
    await ask(url, 'PATCH', '/admin/quotas', {
      as: { sub: 'svc_admin', scopes: ['admin:sandbox'] },
      body: { agent_hourly: 1 },
    });
    const message = { code: 'print(40 + 2)' };
    const first = await visit(url, `/execute${await invite()}`, [message]);
    expect(first.frames.at(-1)).toMatchObject({
      ok: true,
      stdout: '42\n',
      session_id: session.session_id,
    });
    const second = await visit(url, `/execute${await invite()}`, [message]);
    expect(second.frames.at(-1)).toMatchObject({
      ok: false,
      error: 'SandboxCapExceeded',
      dimension: 'agent_hourly',
    });
    const rows = await world.rows();
    expect(rows.map(({ exit_status }) => exit_status)).toEqual(['ok', 'cap_exceeded']);
    expect(
      rows.every(
        ({ agent_id, owner }) => String(agent_id).startsWith('run_') && owner === 'usr_alice',
      ),
    ).toBe(true);
    const hash = createHash('sha256').update(message.code).digest('hex');
    expect(rows[0]?.['executed_code_hash']).toBe(hash);
  });
});
