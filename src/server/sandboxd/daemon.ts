/** The daemon: serves one sandbox or many from a folder, and goes on whatever becomes of whoever started it. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { CLOSES } from '../../protocol/closes.js';
import { AilsdError } from '../../protocol/errors.js';
import type { RandomFill, SandboxId } from '../../protocol/ids.js';
import { parse } from '../../protocol/parse.js';
import { sandboxId } from '../../protocol/shapes/fields.js';
import type { IsolationReport, SandboxView } from '../../protocol/shapes/sandboxd.js';
import { type HttpServer, openHttpServer } from '../http/server.js';
import type { DaemonConfig } from './config.js';
import { readWantedState } from './control/wanted-state.js';
import { Door } from './door/door.js';
import { BODY_MAX_BYTES } from './files/receive.js';
import type { Isolation } from './isolation/launcher.js';
import { Sandbox } from './sandbox.js';

/** What a control channel may do. */
export interface Daemon {
  /** Reads what the folder says about it and runs it; one that runs is left as it is. */
  load(id: SandboxId): Promise<SandboxView>;
  /** Ends its processes; its files stay. */
  stop(id: SandboxId): Promise<void>;
  /** As `stop`, and forgets it; its folder is its provider's to remove. */
  remove(id: SandboxId): Promise<void>;
  view(id: SandboxId): SandboxView | undefined;
  views(): readonly SandboxView[];
  /** Goes by `access.json` as it is now; when it returns, nobody is connected whose token does not count. */
  reloadAccess(id: SandboxId): Promise<void>;
}

export interface DaemonParts {
  readonly config: DaemonConfig;
  readonly isolation: Isolation;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: RandomFill;
}

export async function openDaemon(parts: DaemonParts): Promise<RunningDaemon> {
  const { config, clock, logger, random } = parts;
  const server = await openHttpServer({
    host: config.host,
    port: config.port,
    trustedProxies: config.trustedProxies,
    clock,
    logger,
    random,
    limits: LIMITS,
  });
  const daemon = new RunningDaemon(parts, server);
  try {
    await daemon.begin();
    return daemon;
  } catch (error) {
    await daemon[Symbol.asyncDispose]();
    throw error;
  }
}

/** Five thousand idle shells of one proxy are nothing unusual. */
const LIMITS = {
  connections: 16_384,
  connectionsPerAddress: 8_192,
  shutdownTimeoutMs: 1_000,
  // Who is not let in is answered after the headers; whoever uploads may take as long as something comes.
  requestTimeoutMs: 6 * 3_600_000,
};
const START_MS = 30_000;

export class RunningDaemon implements Daemon, AsyncDisposable {
  readonly #parts: DaemonParts;
  readonly #server: HttpServer;
  readonly #door: Door;
  readonly #sandboxes = new Map<SandboxId, Sandbox>();
  readonly #loading = new Map<SandboxId, Promise<Sandbox>>();
  #closing: Promise<void> | undefined;

  constructor(parts: DaemonParts, server: HttpServer) {
    const { config, clock, logger } = parts;
    this.#parts = parts;
    this.#server = server;
    this.#door = new Door({
      find: (id) => this.#find(id),
      isOfMany: config.sandbox === undefined,
      origins: config.origins,
      clock,
      logger,
    });
  }

  get port(): number {
    return this.#server.port;
  }

  get isolation(): IsolationReport {
    return this.#parts.isolation.report;
  }

  /** Where callers reach it. */
  get url(): string {
    const { host, url } = this.#parts.config;
    return url ?? `http://${host.includes(':') ? `[${host}]` : host}:${this.port}`;
  }

  /** Takes up what the folder holds: a daemon that was restarted goes on with its sandboxes. */
  async begin(): Promise<void> {
    const { config, logger } = this.#parts;
    const ids = config.sandbox === undefined ? await this.#idsInFolder() : [config.sandbox];
    for (const id of ids) {
      try {
        if (config.sandbox === undefined && !(await this.#isWanted(id))) continue;
        await this.load(id);
      } catch (error) {
        if (config.sandbox !== undefined) throw error;
        logger.error('a sandbox can not be run', { sandbox_id: id, error });
      }
    }
    this.#server.serve(this.#door.handle, {
      isHttps: false,
      upgrade: this.#door.upgrade,
      // Each route has a bound of its own; this is the largest of them.
      bodyMaxBytes: () => BODY_MAX_BYTES,
    });
  }

  async load(id: SandboxId): Promise<SandboxView> {
    const known = this.#sandboxes.get(id);
    if (known?.isRunning === true) {
      known.access.refresh();
      return this.#viewOf(known);
    }
    // One that is still ending holds what the next one needs.
    await known?.[Symbol.asyncDispose]();
    const loading = this.#loading.get(id) ?? this.#open(id);
    this.#loading.set(id, loading);
    try {
      return this.#viewOf(await loading);
    } finally {
      this.#loading.delete(id);
    }
  }

  async stop(id: SandboxId): Promise<void> {
    this.#door.closeAll(CLOSES.goingAway, id);
    await this.#sandboxes.get(id)?.[Symbol.asyncDispose]();
  }

  async remove(id: SandboxId): Promise<void> {
    await this.stop(id);
    this.#sandboxes.delete(id);
  }

  view(id: SandboxId): SandboxView | undefined {
    const sandbox = this.#sandboxes.get(id);
    return sandbox === undefined ? undefined : this.#viewOf(sandbox);
  }

  views(): readonly SandboxView[] {
    return [...this.#sandboxes.values()].map((sandbox) => this.#viewOf(sandbox));
  }

  async reloadAccess(id: SandboxId): Promise<void> {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox === undefined) throw new AilsdError('NOT_FOUND', 'there is no such sandbox');
    sandbox.access.refresh();
    this.#door.sweep();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#door.closeAll(CLOSES.goingAway);
    await Promise.allSettled(
      [...this.#sandboxes.values()].map((sandbox) => sandbox[Symbol.asyncDispose]()),
    );
    await this.#server[Symbol.asyncDispose]();
    this.#door[Symbol.dispose]();
  }

  #find(id: string | undefined): Sandbox | undefined {
    for (const sandbox of this.#sandboxes.values())
      if (id === undefined || sandbox.id === id) return sandbox;
    return undefined;
  }

  async #open(id: SandboxId): Promise<Sandbox> {
    const { config, isolation, clock, logger, random } = this.#parts;
    const folder = config.sandbox === undefined ? join(config.dir, 'sandboxes', id) : config.dir;
    const sandbox = await Sandbox.open(
      {
        id,
        folder,
        isolation,
        ringBytes: config.ringBytes,
        isRecorded: config.isRecording,
        clock,
        logger,
        random,
      },
      AbortSignal.timeout(START_MS),
    );
    this.#sandboxes.set(id, sandbox);
    return sandbox;
  }

  #viewOf(sandbox: Sandbox): SandboxView {
    const base =
      this.#parts.config.sandbox === undefined ? `${this.url}/s/${sandbox.id}` : this.url;
    return sandbox.view({ http: base, ws: base.replace(/^http/, 'ws') });
  }

  /** Whether one is to run, its `state.json` says; without one it is. */
  async #isWanted(id: SandboxId): Promise<boolean> {
    const folder = join(this.#parts.config.dir, 'sandboxes', id);
    return (await readWantedState(folder)) === 'running';
  }

  async #idsInFolder(): Promise<readonly SandboxId[]> {
    const names = await readdir(join(this.#parts.config.dir, 'sandboxes')).catch(() => []);
    return names.flatMap((name) => {
      const parsed = parse(sandboxId, name, 'INVALID_REQUEST', '');
      return parsed.ok ? [parsed.value] : [];
    });
  }
}
