/** Sandboxes on this very host: folders, and one daemon that runs programs in them, keeps them apart and serves their clients. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { SandboxId, SnapshotId } from '../../../protocol/ids.js';
import { parse } from '../../../protocol/parse.js';
import * as shapes from '../../../protocol/shapes/sandboxd.js';
import type {
  Endpoints,
  Provider,
  ProviderFlags,
  ProviderSnapshots,
  ProviderView,
} from '../provider.js';
import { type ControlMethod, callDaemon } from './control-client.js';
import { type DaemonOptions, ensureDaemon } from './daemon-process.js';
import { noSuchSandbox, SandboxFolders } from './sandbox-folders.js';
import { Snapshots } from './snapshots.js';

export interface LocalOptions {
  /** All of it is in here; made when it is needed, for us alone. */
  readonly dir: string;
  readonly isolation: DaemonOptions['isolation'];
  /** Of the daemon: a program for `node`, by path, since it is not ours to import. */
  readonly daemonProgram: string;
  readonly node: string;
  readonly clock: Clock;
  /** What a sandbox gets whose spec says 0. */
  readonly limits?: { readonly memoryBytes: number; readonly pids: number } | undefined;
}

/** Starts nothing: the daemon is started by the first sandbox, and goes on after us. */
export async function openLocalProvider(options: LocalOptions): Promise<LocalProvider> {
  const folders = new SandboxFolders(options.dir);
  await folders.sweep();
  return new LocalProvider(options, folders, await rememberedIsolation(options.dir));
}

export class LocalProvider implements Provider {
  readonly name = 'local';
  readonly snapshots: ProviderSnapshots;
  readonly #options: LocalOptions;
  readonly #folders: SandboxFolders;
  #isolation: shapes.IsolationReport | undefined;

  constructor(
    options: LocalOptions,
    folders: SandboxFolders,
    isolation: shapes.IsolationReport | undefined,
  ) {
    this.#options = options;
    this.#folders = folders;
    this.#isolation = isolation;
    const kept = new Snapshots(options.dir);
    this.snapshots = {
      take: async (id, snapshot, signal) => ({
        sizeBytes: await kept.take(snapshot, await this.#existing(id), signal),
      }),
      restore: (id, snapshot, signal) => this.#restore(kept, id, snapshot, signal),
      remove: (snapshot) => kept.remove(snapshot),
    };
  }

  /**
   * What the daemon found out, this time or the last; before there was any, what such a host can do, and `create` asks again and refuses
   * what turns out not to be so.
   */
  get flags(): ProviderFlags {
    const isolates = process.platform === 'linux' && this.#options.isolation !== 'none';
    const report = this.#isolation ?? {
      kind: isolates ? 'namespaces' : 'none',
      egress_control: isolates,
      memory_limit: false,
    };
    return {
      isolation: report.kind,
      egressControl: report.egress_control,
      memoryLimit: report.memory_limit,
      snapshots: process.platform === 'linux',
      validatesTokens: true,
    };
  }

  /** For the operator; `undefined` until a daemon was asked. */
  get isolation(): shapes.IsolationReport | undefined {
    return this.#isolation;
  }

  async create(
    spec: shapes.SandboxSpec,
    access: shapes.SandboxAccessFile,
    signal: AbortSignal,
  ): Promise<void> {
    const { isolation } = await this.#daemon(signal);
    if (spec.environment === 'internal-only' && !isolation.egress_control) {
      throw new AilsdError('PROVIDER_UNAVAILABLE', 'this host cannot keep a sandbox offline', {
        details: { reason: isolation.reason },
      });
    }
    await this.#folders.make(this.#withLimits(spec), access);
    await this.#load(spec.id, signal);
  }

  async start(id: SandboxId, signal: AbortSignal): Promise<void> {
    await this.#existing(id);
    await this.#daemon(signal);
    await this.#load(id, signal);
  }

  async stop(id: SandboxId, signal: AbortSignal): Promise<void> {
    await this.#existing(id);
    const path = `/sandboxes/${id}/stop`;
    if ((await this.#call('POST', path, shapes.nothing, signal)) !== undefined) return;
    // Where no daemon is, no process is; but one that comes runs what ran. One that came meanwhile is asked again.
    await this.#folders.markStopped(id);
    await this.#call('POST', path, shapes.nothing, signal);
  }

  async destroy(id: SandboxId, signal: AbortSignal): Promise<void> {
    this.#folders.folder(id);
    await this.#call('DELETE', `/sandboxes/${id}`, shapes.nothing, signal);
    await this.#folders.remove(id);
  }

  async inspect(id: SandboxId, signal: AbortSignal): Promise<ProviderView | undefined> {
    const spec = await this.#folders.spec(id);
    if (spec === undefined) return undefined;
    return toView(spec, await this.#view(id, signal));
  }

  async list(signal: AbortSignal): Promise<readonly ProviderView[]> {
    const running = await this.#call('GET', '/sandboxes', shapes.sandboxViews, signal);
    const views = new Map((running?.items ?? []).map((view) => [view.id, view]));
    const listed: ProviderView[] = [];
    for (const id of await this.#folders.ids()) {
      const spec = await this.#folders.spec(id);
      if (spec !== undefined) listed.push(toView(spec, views.get(id)));
    }
    return listed;
  }

  async endpoints(id: SandboxId, signal: AbortSignal): Promise<Endpoints> {
    await this.#existing(id);
    const view = await this.#view(id, signal);
    if (view?.state !== 'running') {
      throw new AilsdError('PROVIDER_UNAVAILABLE', 'the sandbox is not running');
    }
    return { httpUrl: view.http_base_url, wsUrl: view.ws_base_url };
  }

  /** By file first: a daemon that is away, or whose answer is lost, reads it before it lets anybody in. */
  async deliver(
    id: SandboxId,
    access: shapes.SandboxAccessFile,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#folders.deliver(id, access);
    try {
      await this.#call('POST', `/sandboxes/${id}/access`, shapes.nothing, signal);
    } catch (error) {
      // It is not loaded: it will read the file when it is.
      if (!(error instanceof AilsdError && error.code === 'NOT_FOUND')) throw error;
    }
  }

  /** The daemon and its sandboxes go on: another broker, or the next one, finds them. */
  async [Symbol.asyncDispose](): Promise<void> {}

  /** Ends the daemon and with it all processes of its sandboxes. They run again when it does. For operators and tests. */
  async shutDown(signal: AbortSignal): Promise<void> {
    await this.#call('POST', '/shutdown', shapes.nothing, signal);
  }

  async #restore(
    kept: Snapshots,
    id: SandboxId,
    snapshot: SnapshotId,
    signal: AbortSignal,
  ): Promise<void> {
    const folder = await this.#existing(id);
    const wasRunning = (await this.#view(id, signal))?.state === 'running';
    if (wasRunning) await this.stop(id, signal);
    await kept.restore(snapshot, folder, signal);
    if (wasRunning) await this.start(id, signal);
  }

  #withLimits(spec: shapes.SandboxSpec): shapes.SandboxSpec {
    const { limits } = this.#options;
    if (limits === undefined) return spec;
    const { memory_bytes: memory, pids } = spec.limits;
    return {
      ...spec,
      limits: {
        ...spec.limits,
        memory_bytes: memory === 0 ? limits.memoryBytes : memory,
        pids: pids === 0 ? limits.pids : pids,
      },
    };
  }

  async #load(id: SandboxId, signal: AbortSignal): Promise<void> {
    const view = await this.#call('PUT', `/sandboxes/${id}`, shapes.sandboxView, signal);
    if (view?.state === 'running') return;
    throw new AilsdError('PROVIDER_UNAVAILABLE', "the sandboxes' daemon has just ended");
  }

  async #existing(id: SandboxId): Promise<string> {
    if ((await this.#folders.spec(id)) === undefined) throw noSuchSandbox();
    return this.#folders.folder(id);
  }

  async #daemon(signal: AbortSignal): Promise<shapes.DaemonHealth> {
    const { daemonProgram: program } = this.#options;
    const health = await ensureDaemon({ ...this.#options, program }, signal);
    this.#isolation = health.isolation;
    return health;
  }

  async #view(id: SandboxId, signal: AbortSignal): Promise<shapes.SandboxView | undefined> {
    try {
      return await this.#call('GET', `/sandboxes/${id}`, shapes.sandboxView, signal);
    } catch (error) {
      if (error instanceof AilsdError && error.code === 'NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** `undefined`: there is no daemon. */
  async #call<S extends Parameters<typeof parse>[0]>(
    method: ControlMethod,
    path: string,
    schema: S,
    signal: AbortSignal,
  ) {
    const socketPath = join(this.#options.dir, 'control.sock');
    const answer = await callDaemon(socketPath, method, path, schema, signal);
    return answer.kind === 'answer' ? answer.value : undefined;
  }
}

function toView(spec: shapes.SandboxSpec, view: shapes.SandboxView | undefined): ProviderView {
  const { id, labels } = spec;
  if (view?.state !== 'running') return { id, state: 'stopped', labels };
  return {
    id,
    state: 'running',
    labels,
    activity: {
      openShells: view.open_shells,
      attachedViewers: view.attached_viewers,
      runningCommands: view.running_commands,
      lastActiveAtMs: view.last_active_at,
    },
  };
}

async function rememberedIsolation(dir: string): Promise<shapes.IsolationReport | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(join(dir, 'daemon.json'), 'utf8'));
    const parsed = parse(shapes.daemonHealth, value, 'CONFIG_INVALID', '');
    return parsed.ok ? parsed.value.isolation : undefined;
  } catch {
    return undefined;
  }
}
