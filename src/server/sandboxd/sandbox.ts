/** One sandbox of a daemon: its folder, whose tokens count, its processes, and what it serves. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import type { RandomFill, SandboxId } from '../../protocol/ids.js';
import { parse } from '../../protocol/parse.js';
import { type SandboxSpec, type SandboxView, sandboxSpec } from '../../protocol/shapes/sandboxd.js';
import { Access } from './access/access.js';
import type { Place } from './door/door.js';
import type { SandboxRoutes } from './door/routes.js';
import { Commands } from './exec/commands.js';
import { execEndpoint } from './exec/exec-endpoint.js';
import { execRoutes } from './exec/exec-routes.js';
import { FileRoutes } from './files/file-routes.js';
import { openStaging, type Staging } from './files/staging.js';
import { Workspace } from './files/workspace.js';
import type { Isolation, Launcher } from './isolation/launcher.js';
import { shellEndpoint } from './shell/shell-endpoint.js';
import { shellRoutes } from './shell/shell-routes.js';
import { Shells } from './shell/shells.js';

export interface SandboxParts {
  readonly id: SandboxId;
  readonly folder: string;
  readonly isolation: Isolation;
  readonly ringBytes: number;
  readonly isRecorded: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: RandomFill;
}

export class Sandbox implements Place, AsyncDisposable {
  readonly id: SandboxId;
  readonly access: Access;
  readonly routes: SandboxRoutes;
  readonly launcher: Launcher;
  readonly shells: Shells;
  readonly commands: Commands;
  readonly files: Workspace;
  readonly #fileRoutes: FileRoutes;
  readonly #spec: SandboxSpec;
  readonly #stopped = new AbortController();
  readonly #startedAtMs: number;
  #ending: Promise<void> | undefined;

  private constructor(
    parts: SandboxParts,
    spec: SandboxSpec,
    launcher: Launcher,
    staging: Staging,
  ) {
    const { id, folder, clock, random, ringBytes, isRecorded } = parts;
    const logger = parts.logger.child({ sandbox_id: id });
    this.id = id;
    this.#spec = spec;
    this.#startedAtMs = clock.now();
    this.launcher = launcher;
    const path = join(folder, 'access.json');
    this.access = new Access({ path, sandboxId: id, threadId: spec.thread_id, clock, logger });
    const env = { ...spec.env, AILSD_THREAD: spec.thread_id, AILSD_SANDBOX_ID: id };
    this.shells = new Shells({
      launcher,
      folder: join(folder, 'shells'),
      maxShells: spec.limits.shells,
      ringBytes,
      env,
      isRecorded,
      clock,
      logger,
      random,
    });
    this.commands = new Commands({
      launcher,
      folder: join(folder, 'commands'),
      maxCommands: spec.limits.commands,
      env,
      clock,
      logger,
      random,
    });
    this.files = new Workspace(launcher, staging, clock);
    this.#fileRoutes = new FileRoutes(this.files, clock);
    const shell = shellEndpoint(this.shells);
    this.routes = {
      http: {
        ...shellRoutes(this.shells),
        ...execRoutes(this.commands, id),
        ...this.#fileRoutes.http,
      },
      sockets: {
        shellSocket: shell,
        shellSocketByThread: shell,
        execSocket: execEndpoint(this.commands),
      },
    };
  }

  /** Reads `spec.json`; processes start when they are asked for. */
  static async open(parts: SandboxParts, signal: AbortSignal): Promise<Sandbox> {
    const { id, folder, isolation } = parts;
    const spec = await readSpec(join(folder, 'spec.json'));
    const { memory_bytes: memoryBytes, pids } = spec.limits;
    const { environment } = spec;
    const launcher = await isolation.open({ id, folder, environment, memoryBytes, pids }, signal);
    const staging = await openStaging(folder, launcher.workspace);
    return new Sandbox(parts, spec, launcher, staging);
  }

  get isRunning(): boolean {
    return this.#ending === undefined;
  }

  get signal(): AbortSignal {
    return this.#stopped.signal;
  }

  view(base: { readonly http: string; readonly ws: string }): SandboxView {
    const shells = this.shells.list();
    const active = [this.#fileRoutes, ...shells].map(({ lastActiveAtMs }) => lastActiveAtMs);
    return {
      id: this.id,
      state: this.isRunning ? 'running' : 'stopped',
      labels: this.#spec.labels,
      http_base_url: base.http,
      ws_base_url: base.ws,
      open_shells: this.shells.running,
      attached_viewers: this.shells.viewers,
      running_commands: this.commands.running,
      last_active_at: Math.max(this.#startedAtMs, this.commands.lastActiveAtMs, ...active),
      access_generation: this.access.generation,
    };
  }

  /** Its processes end; its files stay. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    this.#stopped.abort();
    await this.commands[Symbol.asyncDispose]();
    await this.shells[Symbol.asyncDispose]();
    await this.launcher[Symbol.asyncDispose]();
  }
}

export async function readSpec(path: string): Promise<SandboxSpec> {
  const text: unknown = JSON.parse(await readFile(path, 'utf8'));
  const parsed = parse(sandboxSpec, text, 'CONFIG_INVALID', 'spec.json: ');
  if (!parsed.ok) throw parsed.error;
  return parsed.value;
}
