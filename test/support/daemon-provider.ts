/** A provider over a real daemon in this process: real shells, no isolation, and a clock of its own that a test may set ahead. */
import { webcrypto } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/logger.js';
import type { SandboxId } from '../../src/protocol/ids.js';
import type { SandboxAccessFile, SandboxSpec } from '../../src/protocol/shapes/sandboxd.js';
import type {
  Endpoints,
  Provider,
  ProviderFlags,
  ProviderView,
} from '../../src/server/providers/provider.js';
import { parseDaemonConfig } from '../../src/server/sandboxd/config.js';
import { openDaemon, type RunningDaemon } from '../../src/server/sandboxd/daemon.js';
import { openNone } from '../../src/server/sandboxd/isolation/none.js';

/** The system's, set ahead. */
export class ShiftedClock implements Clock {
  aheadMs = 0;

  now(): number {
    return systemClock.now() + this.aheadMs;
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal);
  }
}

export class DaemonProvider implements Provider {
  readonly name = 'daemon';
  readonly flags: ProviderFlags = {
    isolation: 'none',
    egressControl: false,
    memoryLimit: false,
    snapshots: false,
    validatesTokens: true,
  };
  readonly clock: ShiftedClock;
  readonly #dir: string;
  readonly #daemon: RunningDaemon;

  private constructor(dir: string, daemon: RunningDaemon, clock: ShiftedClock) {
    this.#dir = dir;
    this.#daemon = daemon;
    this.clock = clock;
  }

  static async open(): Promise<DaemonProvider> {
    const dir = await mkdtemp(join(tmpdir(), 'ailsd-daemon-'));
    const clock = new ShiftedClock();
    const daemon = await openDaemon({
      config: parseDaemonConfig({ dir, isolation: 'none' }),
      isolation: openNone(clock, 'a test'),
      clock,
      logger: silentLogger,
      random: (bytes) => webcrypto.getRandomValues(bytes),
    });
    return new DaemonProvider(dir, daemon, clock);
  }

  async create(spec: SandboxSpec, access: SandboxAccessFile): Promise<void> {
    await mkdir(this.#folder(spec.id), { recursive: true });
    await this.#write(spec.id, 'spec.json', spec);
    await this.#write(spec.id, 'access.json', access);
    await this.#daemon.load(spec.id);
  }

  async start(id: SandboxId): Promise<void> {
    await this.#daemon.load(id);
  }

  stop(id: SandboxId): Promise<void> {
    return this.#daemon.stop(id);
  }

  async destroy(id: SandboxId): Promise<void> {
    await this.#daemon.remove(id);
    await rm(this.#folder(id), { recursive: true, force: true });
  }

  async inspect(id: SandboxId): Promise<ProviderView | undefined> {
    const view = this.#daemon.view(id);
    return view && { id, state: view.state, labels: view.labels };
  }

  async list(): Promise<readonly ProviderView[]> {
    return this.#daemon.views().map(({ id, state, labels }) => ({ id, state, labels }));
  }

  async endpoints(id: SandboxId): Promise<Endpoints> {
    const place = `127.0.0.1:${this.#daemon.port}/s/${id}`;
    return { httpUrl: `http://${place}`, wsUrl: `ws://${place}` };
  }

  async deliver(id: SandboxId, access: SandboxAccessFile): Promise<void> {
    await this.#write(id, 'access.json', access);
    await this.#daemon.reloadAccess(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#daemon[Symbol.asyncDispose]();
    await rm(this.#dir, { recursive: true, force: true });
  }

  #folder(id: SandboxId): string {
    return join(this.#dir, 'sandboxes', id);
  }

  async #write(id: SandboxId, name: string, value: object): Promise<void> {
    const path = join(this.#folder(id), name);
    await writeFile(`${path}.tmp`, JSON.stringify(value), { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  }
}
