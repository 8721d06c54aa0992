/** A real daemon in this process on loopback, with real terminals and no isolation, and tokens made with its key. */
import { createHmac, randomBytes, webcrypto } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../../../src/base/clock.js';
import { createLogger } from '../../../../src/base/logger.js';
import { newId, type SandboxId } from '../../../../src/protocol/ids.js';
import { parseDaemonConfig } from '../../../../src/server/sandboxd/config.js';
import { openDaemon, type RunningDaemon } from '../../../../src/server/sandboxd/daemon.js';
import { openNone } from '../../../../src/server/sandboxd/isolation/none.js';
import { openIsolation } from '../../../../src/server/sandboxd/isolation/open-isolation.js';

export const THREAD = 'thr_test';

export interface Served extends AsyncDisposable {
  readonly daemon: RunningDaemon;
  readonly dir: string;
  readonly id: SandboxId;
  readonly folder: string;
  readonly port: number;
  /** Where its WebSocket and HTTP paths begin. */
  readonly ws: string;
  readonly http: string;
  readonly log: () => string;
  token(claims?: Record<string, unknown>, key?: Uint8Array): string;
  /** Replaces `access.json`, as a provider would. */
  access(change: { keys?: readonly Uint8Array[]; ended?: readonly Ended[] }): Promise<void>;
  readonly key: Uint8Array;
}

export interface Ended {
  readonly jti: string;
  readonly from: number;
  readonly until: number;
}

export interface ServedOptions {
  readonly clock?: Clock;
  readonly ringBytes?: number;
  readonly shells?: number;
  readonly recording?: boolean;
  readonly origins?: readonly string[];
  readonly isolation?: 'namespaces' | 'none';
  readonly commands?: number;
  /** One that served before: its folder is taken up as it is. */
  readonly again?: Served;
}

export const random = (bytes: Uint8Array<ArrayBuffer>) => webcrypto.getRandomValues(bytes);

export async function serveSandbox(options: ServedOptions = {}): Promise<Served> {
  const clock = options.clock ?? systemClock;
  const { again } = options;
  const dir = again?.dir ?? (await mkdtemp(join(tmpdir(), 'ailsd-sandboxd-')));
  const id = again?.id ?? newId('sandbox', random);
  const folder = join(dir, 'sandboxes', id);
  const key = again?.key ?? randomBytes(32);
  await mkdir(folder, { recursive: true });
  const spec = specOf(id, options.shells ?? 64, options.commands);
  await writeFile(join(folder, 'spec.json'), JSON.stringify(spec));
  let generation = 0;
  const access: Served['access'] = async ({ keys = [key], ended = [] }) => {
    generation += 1;
    const text = {
      generation,
      keys: keys.map((one) => Buffer.from(one).toString('base64url')),
      ended,
    };
    await writeFile(join(folder, 'access.tmp'), JSON.stringify(text), { mode: 0o600 });
    await rename(join(folder, 'access.tmp'), join(folder, 'access.json'));
  };
  await access({});
  let log = '';
  const logger = createLogger({
    write: (line) => {
      log += line;
    },
    clock,
    level: 'debug',
  });
  const config = parseDaemonConfig({
    dir,
    isolation: 'none',
    log_level: 'debug',
    recording: options.recording ?? false,
    ...(options.ringBytes === undefined ? {} : { ring_bytes: options.ringBytes }),
    ...(options.origins === undefined ? {} : { origins: options.origins }),
  });
  const isolation =
    options.isolation === 'namespaces'
      ? await openIsolation({
          wanted: 'namespaces',
          dir,
          clock,
          logger,
          platform: process.platform,
        })
      : openNone(clock, 'a test');
  const daemon = await openDaemon({ config, isolation, clock, logger, random });
  const { port } = daemon;
  return {
    daemon,
    dir,
    id,
    folder,
    port,
    key,
    ws: `ws://127.0.0.1:${port}/s/${id}`,
    http: `http://127.0.0.1:${port}/s/${id}`,
    log: () => log,
    token: (claims = {}, signedBy = key) => forge({ ...claimsOf(id, clock), ...claims }, signedBy),
    access,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export function specOf(id: string, shells: number, commands = 16) {
  return {
    id,
    thread_id: THREAD,
    environment: 'default-public',
    env: {},
    limits: { memory_bytes: 0, pids: 0, disk_bytes: 0, shells, commands },
    labels: {},
  };
}

export function claimsOf(id: string, clock: Clock) {
  const iat = Math.floor(clock.now() / 1_000);
  return {
    sub: 'usr_1',
    aud: id,
    scope: 'fs:rw shell',
    thread_id: THREAD,
    room: THREAD,
    iat,
    exp: iat + 900,
    jti: newId('token', random),
  };
}

/** By hand, since our own signer refuses to make most of what a test needs. */
export function forge(
  claims: object,
  key: Uint8Array,
  header: object = { alg: 'HS256', typ: 'JWT' },
  digest = 'sha256',
): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = `${part(header)}.${part(claims)}`;
  return `${body}.${createHmac(digest, key).update(body).digest('base64url')}`;
}
