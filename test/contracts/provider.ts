/** What the broker relies on, of every provider. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId, parseThreadId, type SandboxId } from '../../src/protocol/ids.js';
import type { SandboxAccessFile, SandboxSpec } from '../../src/protocol/shapes/sandboxd.js';
import type { Endpoints, Provider } from '../../src/server/providers/provider.js';
import { signSandboxToken } from '../../src/server/tokens/sandbox-token.js';

export interface ProviderKind {
  readonly name: string;
  /** A place for sandboxes, in which several providers can be opened: as many brokers. */
  open(): Promise<ProviderPlace>;
}

export interface ProviderPlace extends AsyncDisposable {
  provider(): Promise<Provider>;
  /** Whether its sandboxes serve clients. */
  readonly isServing: boolean;
  /** As a program in the sandbox would; absent where the provider has no files. */
  readonly files?: SandboxFiles | undefined;
}

export interface SandboxFiles {
  write(id: SandboxId, name: string, text: string): Promise<void>;
  /** `undefined`: there is no such file. */
  read(id: SandboxId, name: string): Promise<string | undefined>;
}

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes);
const THREAD = parseThreadId('thr_contract');

export function newSpec(change: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    id: newId('sandbox', random),
    thread_id: THREAD,
    environment: 'default-public',
    env: {},
    limits: { memory_bytes: 0, pids: 200, disk_bytes: 0, shells: 8, commands: 8 },
    labels: { server: 'srv_1', thread: 'a label with spaces, ünïcode and = signs' },
    ...change,
  };
}

export function newAccess(generation: number, ...keys: readonly Uint8Array[]): SandboxAccessFile {
  const given = keys.length === 0 ? [randomBytes(32)] : keys;
  return {
    generation,
    keys: given.map((key) => Buffer.from(key).toString('base64url')),
    ended: [],
  };
}

const soon = () => AbortSignal.timeout(20_000);

export function describeProvider(kind: ProviderKind): void {
  describe(`the provider ${kind.name}`, () => {
    let place: ProviderPlace;
    let provider: Provider;
    beforeAll(async () => {
      place = await kind.open();
      provider = await place.provider();
    });
    afterAll(() => place[Symbol.asyncDispose]());

    const create = async (change: Partial<SandboxSpec> = {}): Promise<SandboxSpec> => {
      const spec = newSpec(change);
      await provider.create(spec, newAccess(1), soon());
      return spec;
    };

    it('makes a sandbox that runs, is found by its labels, and is found by others', async () => {
      const { id, labels } = await create();
      expect(await provider.inspect(id, soon())).toMatchObject({ id, state: 'running', labels });
      const other = await place.provider();
      const listed = await other.list(soon());
      expect(listed.filter((one) => one.id === id)).toMatchObject([{ state: 'running', labels }]);
      expect(await other.endpoints(id, soon())).toEqual(await provider.endpoints(id, soon()));
    });

    it('makes one sandbox of any number of creates, at once or after each other', async () => {
      const spec = newSpec();
      const others = await Promise.all([1, 2, 3].map(() => place.provider()));
      await Promise.all([provider, ...others].map((one) => one.create(spec, newAccess(1), soon())));
      await provider.create(spec, newAccess(1), soon());
      const listed = await provider.list(soon());
      expect(listed.filter(({ id }) => id === spec.id)).toHaveLength(1);
    });

    it('stops one and starts it again, where it was reached before', async () => {
      const { id } = await create();
      await place.files?.write(id, 'kept', 'as it was');
      const before = await provider.endpoints(id, soon());
      await provider.stop(id, soon());
      await provider.stop(id, soon());
      expect(await provider.inspect(id, soon())).toMatchObject({ id, state: 'stopped' });
      expect(await provider.list(soon())).toContainEqual(
        expect.objectContaining({ id, state: 'stopped' }),
      );
      await provider.start(id, soon());
      await provider.start(id, soon());
      expect(await provider.inspect(id, soon())).toMatchObject({ id, state: 'running' });
      expect(await provider.endpoints(id, soon())).toEqual(before);
      if (place.files) expect(await place.files.read(id, 'kept')).toBe('as it was');
    });

    it('removes one, running or stopped, and does not mind if it is gone', async () => {
      for (const isStopped of [false, true]) {
        const { id } = await create();
        if (isStopped) await provider.stop(id, soon());
        await provider.destroy(id, soon());
        await provider.destroy(id, soon());
        expect(await provider.inspect(id, soon())).toBeUndefined();
        expect((await provider.list(soon())).map((one) => one.id)).not.toContain(id);
      }
    });

    it('says NOT_FOUND of one that was never there', async () => {
      const id = newId('sandbox', random);
      expect(await provider.inspect(id, soon())).toBeUndefined();
      const code = 'NOT_FOUND';
      await expect(provider.start(id, soon())).rejects.toMatchObject({ code });
      await expect(provider.stop(id, soon())).rejects.toMatchObject({ code });
      await expect(provider.endpoints(id, soon())).rejects.toMatchObject({ code });
      await expect(provider.deliver(id, newAccess(2), soon())).rejects.toMatchObject({ code });
    });

    it('lets in by the keys that were delivered last, and goes by nothing older', async () => {
      const [first, second] = [randomBytes(32), randomBytes(32)];
      const spec = newSpec();
      await provider.create(spec, newAccess(5, first), soon());
      const enters = async (key: Uint8Array) =>
        place.isServing && (await isLetIn(await provider.endpoints(spec.id, soon()), spec, key));
      expect(await enters(first)).toBe(place.isServing);
      expect(await enters(second)).toBe(false);
      await provider.deliver(spec.id, newAccess(6, second), soon());
      expect(await enters(first)).toBe(false);
      expect(await enters(second)).toBe(place.isServing);
      await provider.deliver(spec.id, newAccess(5, first), soon());
      await provider.create(spec, newAccess(5, first), soon());
      expect(await enters(first)).toBe(false);
      await provider.stop(spec.id, soon());
      await provider.deliver(spec.id, newAccess(7, first), soon());
      await provider.start(spec.id, soon());
      expect(await enters(second)).toBe(false);
      expect(await enters(first)).toBe(place.isServing);
    });

    it('keeps a sandbox offline, or refuses to make it', async () => {
      const spec = newSpec({ environment: 'internal-only' });
      const made = provider.create(spec, newAccess(1), soon());
      if (provider.flags.egressControl) return made;
      await expect(made).rejects.toMatchObject({ code: 'PROVIDER_UNAVAILABLE' });
      return expect(await provider.inspect(spec.id, soon())).toBeUndefined();
    });

    it('takes snapshots and goes back to them, if it says so', async (context) => {
      const { files } = place;
      const { snapshots } = provider;
      expect(snapshots !== undefined).toBe(provider.flags.snapshots);
      if (snapshots === undefined || files === undefined) return context.skip('it takes none');
      const { id } = await create();
      const snapshot = newId('snapshot', random);
      await files.write(id, 'file', 'before');
      expect(await snapshots.take(id, snapshot, soon())).toEqual({ sizeBytes: 6 });
      await files.write(id, 'file', 'after');
      await files.write(id, 'new', 'after');
      await snapshots.restore(id, snapshot, soon());
      expect(await files.read(id, 'file')).toBe('before');
      expect(await files.read(id, 'new')).toBeUndefined();
      expect(await provider.inspect(id, soon())).toMatchObject({ state: 'running' });
      const { id: other } = await create();
      await snapshots.restore(other, snapshot, soon());
      expect(await files.read(other, 'file')).toBe('before');
      await snapshots.remove(snapshot, soon());
      await snapshots.remove(snapshot, soon());
      await expect(snapshots.restore(id, snapshot, soon())).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    });
  });
}

async function isLetIn(
  { httpUrl }: Endpoints,
  { id, thread_id: threadId }: SandboxSpec,
  key: Uint8Array,
): Promise<boolean> {
  const now = Math.floor(Date.now() / 1000);
  const token = signSandboxToken(key, {
    sub: 'usr_1',
    aud: id,
    scope: 'shell',
    thread_id: threadId,
    iat: now,
    exp: now + 60,
    jti: newId('token', random),
  });
  const headers = { authorization: `Bearer ${token.reveal()}` };
  const { status } = await fetch(`${httpUrl}/v1/shells`, { headers });
  return status === 200;
}
