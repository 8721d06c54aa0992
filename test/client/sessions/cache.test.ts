import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { MOST_REMEMBERED, SessionCache } from '../../../src/client/sessions/cache.js';
import type { SandboxId, SessionId } from '../../../src/protocol/ids.js';
import { temporaryFolder } from '../../support/cli.js';

const KEY = { server: 'https://a.example', account: 'ada', thread: '../../etc' };
const REMEMBERED = {
  sessionId: 'ssn_1' as SessionId,
  sandboxId: 'sb_1' as SandboxId,
  provider: 'local',
  httpUrl: 'http://127.0.0.1:1/s/sb_1',
  wsUrl: 'ws://127.0.0.1:1/s/sb_1',
};

function cacheIn(folder: string, clock = new ManualClock(1_000_000)) {
  const traces: string[] = [];
  const trace = (text: string): unknown => traces.push(text);
  return Object.assign(new SessionCache({ folder, userId: process.getuid?.(), clock, trace }), {
    traces,
  });
}

describe('what is remembered of a thread', () => {
  it('comes back for that server, account and thread, and for no other', () => {
    using folder = temporaryFolder();
    cacheIn(folder.path).set(KEY, REMEMBERED);
    const cache = cacheIn(folder.path);
    expect(cache.get(KEY)).toEqual(REMEMBERED);
    expect(cache.get({ ...KEY, server: 'https://b.example' })).toBe(undefined);
    expect(cache.get({ ...KEY, account: 'ben' })).toBe(undefined);
    expect(cache.get({ ...KEY, thread: 'thr_2' })).toBe(undefined);
    cache.forget(KEY);
    expect(cache.get(KEY)).toBe(undefined);
  });

  it('is a 0600 file in a 0700 folder, named by no name from outside, and nothing half-written stays', () => {
    using folder = temporaryFolder();
    cacheIn(folder.path).set(KEY, REMEMBERED);
    const inner = join(folder.path, 'sessions');
    expect(statSync(inner).mode & 0o777).toBe(0o700);
    const names = readdirSync(inner);
    expect(names).toEqual([expect.stringMatching(/^[0-9a-z]+-[0-9a-z]+\.json$/)]);
    expect(statSync(join(inner, names[0] ?? '')).mode & 0o777).toBe(0o600);
  });

  it('is no more than so many threads: the oldest go', () => {
    using folder = temporaryFolder();
    const cache = cacheIn(folder.path);
    for (let at = 0; at < MOST_REMEMBERED + 20; at += 1) {
      cache.set({ ...KEY, thread: `thr_${at}` }, REMEMBERED);
    }
    expect(readdirSync(join(folder.path, 'sessions'))).toHaveLength(MOST_REMEMBERED);
    expect(cache.get({ ...KEY, thread: `thr_${MOST_REMEMBERED + 19}` })).toEqual(REMEMBERED);
  });

  it('is written again when it changed, or once a day', async () => {
    using folder = temporaryFolder();
    const clock = new ManualClock(1_000_000);
    const cache = cacheIn(folder.path, clock);
    const savedAt = (): number => {
      const inner = join(folder.path, 'sessions');
      return JSON.parse(readFileSync(join(inner, readdirSync(inner)[0] ?? ''), 'utf8')).saved_at;
    };
    cache.set(KEY, REMEMBERED);
    await clock.advance(3_600_000);
    cache.set(KEY, REMEMBERED);
    expect(savedAt()).toBe(1_000_000);
    cache.set(KEY, { ...REMEMBERED, sandboxId: 'sb_2' as SandboxId });
    expect(savedAt()).toBe(4_600_000);
    expect(cache.get(KEY)?.sandboxId).toBe('sb_2');
    await clock.advance(2 * 86_400_000);
    cache.set(KEY, { ...REMEMBERED, sandboxId: 'sb_2' as SandboxId });
    expect(savedAt()).toBe(4_600_000 + 2 * 86_400_000);
  });

  it('that is broken, open to others, a folder, or nowhere, is as if there were nothing', () => {
    using folder = temporaryFolder();
    const inner = join(folder.path, 'sessions');
    const cache = cacheIn(folder.path);
    cache.set(KEY, REMEMBERED);
    const file = join(inner, readdirSync(inner)[0] ?? '');
    for (const text of ['', '{', '[]', '"x"', '{"server":"https://a.example"}', '\u0000']) {
      writeFileSync(file, text);
      expect(cache.get(KEY)).toBe(undefined);
    }
    cache.set(KEY, REMEMBERED);
    expect(cache.get(KEY)).toEqual(REMEMBERED);
    chmodSync(file, 0o644);
    expect(cache.get(KEY)).toBe(undefined);
    chmodSync(file, 0o600);
    chmodSync(inner, 0o755);
    expect(cache.get(KEY)).toBe(undefined);
    cache.set(KEY, REMEMBERED);
    expect(cache.traces.length).toBeGreaterThan(0);

    using other = temporaryFolder();
    mkdirSync(join(other.path, 'x'));
    writeFileSync(join(other.path, 'x', 'sessions'), 'a file where the folder should be');
    const useless = cacheIn(join(other.path, 'x'));
    useless.set(KEY, REMEMBERED);
    expect(useless.get(KEY)).toBe(undefined);
  });

  it("under another thread's name is not that thread's: names of files may collide", () => {
    using folder = temporaryFolder();
    const cache = cacheIn(folder.path);
    const other = { ...KEY, thread: 'thr_2' };
    cache.set(other, REMEMBERED);
    const [name = ''] = readdirSync(join(folder.path, 'sessions'));
    cache.set(KEY, REMEMBERED);
    const [mine = ''] = readdirSync(join(folder.path, 'sessions')).filter((one) => one !== name);
    renameSync(join(folder.path, 'sessions', mine), join(folder.path, 'sessions', name));
    expect(cache.get(other)).toBe(undefined);
  });

  it('with ids that could be a path is not taken', () => {
    using folder = temporaryFolder();
    const cache = cacheIn(folder.path);
    cache.set(KEY, { ...REMEMBERED, sessionId: '../../admin' as SessionId });
    expect(cache.get(KEY)).toBe(undefined);
  });
});
