/** What a sandbox is told about whose tokens count, and that it is told: whatever ended, whoever ended it. */
import { webcrypto } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { Secret } from '../../../src/base/secret.js';
import type { SandboxId, ThreadId } from '../../../src/protocol/ids.js';
import { parse } from '../../../src/protocol/parse.js';
import { sandboxAccessFile } from '../../../src/protocol/shapes/sandboxd.js';
import { ENDED_MAX, readAccessFile } from '../../../src/server/broker/access/access-file.js';
import { AccessDelivery } from '../../../src/server/broker/access/delivery.js';
import { openSandboxKeys } from '../../../src/server/broker/tokens/mint.js';
import { checkOpaqueToken } from '../../../src/server/sandboxd/access/opaque-check.js';
import { openStore } from '../../../src/server/store/open-store.js';
import { SandboxAccess } from '../../../src/server/store/sandbox-access.js';
import { ServerSecrets } from '../../../src/server/store/server-secrets.js';
import type { SandboxKeys } from '../../../src/server/tokens/sandbox-keys.js';
import { ensure } from './support/client.js';
import { describeOnBoth } from './support/engines.js';
import { openWorld, type World } from './support/world.js';

const times = (n: number) => Array.from({ length: n }, (_, index) => index);
const random = (bytes: Uint8Array<ArrayBuffer>) => webcrypto.getRandomValues(bytes);

describeOnBoth('access', (engine) => {
  let world: World;
  let keys: SandboxKeys;

  beforeAll(async () => {
    world = await openWorld({ storeUrl: await engine.storeUrl(), jobs: false });
    keys = await openSandboxKeys(world.db, random);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  const parts = () => ({
    db: world.db,
    keys,
    url: world.url(),
    providers: [world.provider],
    clock: systemClock,
    logger: silentLogger,
  });
  const sandboxOf = async (thread: string): Promise<SandboxId> => {
    const { json, status } = await ensure(world.url(), thread);
    expect(status).toBe(200);
    return json.sandbox.id;
  };
  const behind = async (id: SandboxId): Promise<number> => {
    const record = await new SandboxAccess(world.db).find(id);
    return (record?.accessGeneration ?? 0) - (record?.accessDelivered ?? 0);
  };

  it('a secret that 20 want at once over several connections is made once', async () => {
    const handles = await Promise.all(times(4).map(() => openStore(world.storeUrl)));
    try {
      const made = await Promise.all(
        times(20).map(async (index) => {
          const secrets = new ServerSecrets(handles[index % 4] ?? world.db);
          return (await secrets.ensure('wanted', () => new Secret(`secret ${index}`))).reveal();
        }),
      );
      expect(new Set(made).size).toBe(1);
    } finally {
      for (const handle of handles) await handle[Symbol.asyncDispose]();
    }
  });

  it('what is undelivered is found and delivered by any replica, an older word never after a newer', async () => {
    const ids = await Promise.all(times(12).map((index) => sandboxOf(`thr_sweep_${index}`)));
    const access = new SandboxAccess(world.db);
    for (const id of ids) for (const _ of times(3)) await access.bump(id);
    expect(await Promise.all(ids.map(behind))).toEqual(ids.map(() => 3));
    await using one = new AccessDelivery(parts());
    await using other = new AccessDelivery(parts());
    await Promise.all([one.sweep(), other.sweep(), ...ids.map((id) => one.deliverNow(id))]);
    expect(await Promise.all(ids.map(behind))).toEqual(ids.map(() => 0));
    for (const id of ids) {
      const told = (await world.provider.look(id))?.access;
      expect(told?.generation).toBe((await access.find(id))?.accessGeneration);
    }
    await access.markDelivered(ids[0] as SandboxId, 1);
    expect(await behind(ids[0] as SandboxId)).toBe(0);
  });

  it('a change during a delivery is delivered by the next one, which the change waits for', async () => {
    const id = await sandboxOf('thr_during');
    const access = new SandboxAccess(world.db);
    await using delivery = new AccessDelivery(parts());
    await access.bump(id);
    let isFirst = true;
    let second: Promise<boolean> | undefined;
    world.provider.plan.before = async (verb) => {
      if (verb !== 'deliver' || !isFirst) return;
      isFirst = false;
      await access.bump(id);
      second = delivery.deliverNow(id);
    };
    try {
      await delivery.deliverNow(id);
      expect(await second).toBe(true);
    } finally {
      delete world.provider.plan.before;
    }
    expect(await behind(id)).toBe(0);
  });

  it('a replica that comes late with an older word follows it with the newer one', async () => {
    const id = await sandboxOf('thr_late');
    const access = new SandboxAccess(world.db);
    await using late = new AccessDelivery(parts());
    await using other = new AccessDelivery(parts());
    await access.bump(id);
    let isFirst = true;
    world.provider.plan.before = async (verb) => {
      if (verb !== 'deliver' || !isFirst) return;
      isFirst = false;
      await access.bump(id);
      expect(await other.deliverNow(id)).toBe(true);
    };
    try {
      expect(await late.deliverNow(id)).toBe(true);
    } finally {
      delete world.provider.plan.before;
    }
    const told = (await world.provider.look(id))?.access.generation;
    expect(told).toBe((await access.find(id))?.accessGeneration);
    expect(await behind(id)).toBe(0);
  });

  it('whoever revokes waits 1.5 s at most for a provider that hangs, and closing does not wait for it', async () => {
    const id = await sandboxOf('thr_hangs');
    await new SandboxAccess(world.db).bump(id);
    world.provider.plan.before = (verb, _, signal) =>
      verb !== 'deliver'
        ? Promise.resolve()
        : new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    const begin = performance.now();
    try {
      const delivery = new AccessDelivery(parts());
      expect(await delivery.deliverNow(id)).toBe(false);
      expect(performance.now() - begin).toBeLessThan(2_500);
      await delivery[Symbol.asyncDispose]();
      expect(performance.now() - begin).toBeLessThan(3_500);
    } finally {
      delete world.provider.plan.before;
    }
    expect(await behind(id)).toBe(1);
  });

  it('more ended tokens than a file holds make a new key, which ends them all', async () => {
    const id = await sandboxOf('thr_many');
    const before = await new SandboxAccess(world.db).find(id);
    const values = (index: number) =>
      `('tok_many_${index}', 'default', '${id}', 'ssn_1', 'usr_alice', 'c', 'fs:ro', 1, 0, 9000000000000, 1, ${index % 2 ? `'hash_${index}'` : 'NULL'})`;
    for (let at = 0; at <= ENDED_MAX; at += 500) {
      const some = times(Math.min(500, ENDED_MAX + 1 - at)).map((index) => values(at + index));
      await world.db.run(
        `INSERT INTO issued_tokens (jti, tenant, sandbox_id, session_id, subject, client_id, scope, key_generation,
          issued_at, expires_at, ends_at, hash) VALUES ${some.join(', ')}`,
      );
    }
    const file = await readAccessFile(parts(), id);
    expect(file.ended).toEqual([]);
    expect(file.generation).toBeGreaterThan(before?.accessGeneration ?? 0);
    expect(file.keys).toEqual([Buffer.from(keys.keyOf(id, 2)).toString('base64url')]);
    expect(parse(sandboxAccessFile, file, 'INTERNAL', 'the file: ').ok).toBe(true);
  });

  it('switching a tenant off takes new keys to each of its sandboxes and to no other', async () => {
    await world.db.run("INSERT INTO tenants VALUES ('gone', 1, 'default-public', 'jwt', 30, 0)");
    const as = { sub: 'usr_gone', tenant: 'gone' };
    const theirs: SandboxId = (await ensure(world.url(), 'thr_gone', { as })).json.sandbox.id;
    const ours = await sandboxOf('thr_stays');
    const keyOf = async (id: SandboxId) => (await world.provider.look(id))?.access.keys[0];
    const [their, our] = [await keyOf(theirs), await keyOf(ours)];
    expect(await new SandboxAccess(world.db).rotateKeysOf('gone')).toBe(1);
    await using delivery = new AccessDelivery(parts());
    await delivery.sweep();
    expect(await keyOf(theirs)).not.toBe(their);
    expect(await keyOf(ours)).toBe(our);
  });

  it('a sandbox learns of an opaque token from the broker, and lets nobody in when it cannot ask', async () => {
    await world.db.run(
      "INSERT INTO tenants VALUES ('veiled', 1, 'default-public', 'opaque', 30, 0)",
    );
    const as = { sub: 'usr_veiled', tenant: 'veiled' };
    const { json } = await ensure(world.url(), 'thr_veiled', { as });
    const sandboxId: SandboxId = json.sandbox.id;
    const access = (await world.provider.look(sandboxId))?.access;
    const asking = {
      checkUrl: access?.opaque_check_url ?? '',
      key: new Uint8Array(Buffer.from(access?.keys[0] ?? '', 'base64url')),
      sandboxId,
      threadId: 'thr_veiled' as ThreadId,
      clock: systemClock,
      fetch,
      signal: new AbortController().signal,
    };
    const token = new Secret(json.token);
    expect(await checkOpaqueToken(asking, token)).toMatchObject({
      kind: 'valid',
      claims: { sub: 'usr_veiled', thread_id: 'thr_veiled' },
      capabilities: ['fs:rw', 'shell'],
    });
    expect(await checkOpaqueToken(asking, new Secret('ailsd_opaque_x'))).toEqual({
      kind: 'invalid',
    });
    const elsewhere = { ...asking, threadId: 'thr_else' as ThreadId };
    expect(await checkOpaqueToken(elsewhere, token)).toEqual({ kind: 'invalid' });
    for (const change of [
      { key: new Uint8Array(32) },
      { checkUrl: 'http://127.0.0.1:9/internal/tokens' },
    ])
      expect(await checkOpaqueToken({ ...asking, ...change }, token)).toEqual({ kind: 'unknown' });
  });
});
