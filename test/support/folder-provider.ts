/**
 * A provider whose sandboxes are folders in a folder, so that several processes share it and a killed one leaves what it
 * made. It can be slow, fail, hang, answer late or wrongly, by a plan that a test may change at any time.
 */
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SandboxId } from '../../src/protocol/ids.js';
import type { SandboxAccessFile, SandboxSpec } from '../../src/protocol/shapes/sandboxd.js';
import type {
  Activity,
  Endpoints,
  Provider,
  ProviderFlags,
  ProviderView,
} from '../../src/server/providers/provider.js';

export interface FolderPlan {
  /** How long each verb takes: between the two, at random. */
  delayMs?: readonly [least: number, most: number];
  /** Called before a verb does its work; may throw, or never return. */
  before?: (verb: string, id: SandboxId | undefined, signal: AbortSignal) => Promise<void>;
  /** Called when the work is done, before the answer. */
  after?: (verb: string, id: SandboxId | undefined) => Promise<void>;
  endpoints?: Endpoints | undefined;
  activity?: (id: SandboxId) => Activity | undefined;
}

export interface FolderSandbox {
  readonly id: SandboxId;
  readonly state: 'running' | 'stopped';
  readonly labels: Readonly<Record<string, string>>;
  readonly access: SandboxAccessFile;
  readonly threadId: string;
}

export class FolderProvider implements Provider {
  readonly name = 'folder';
  readonly flags: ProviderFlags = {
    isolation: 'none',
    egressControl: false,
    memoryLimit: false,
    snapshots: false,
    validatesTokens: true,
  };
  readonly plan: FolderPlan;
  /** What was asked of it here, as `verb id`. */
  readonly calls: string[] = [];
  readonly #folder: string;
  readonly #random: () => number;
  #writes = 0;

  constructor(folder: string, plan: FolderPlan = {}, random: () => number = Math.random) {
    this.#folder = folder;
    this.plan = plan;
    this.#random = random;
  }

  create(spec: SandboxSpec, given: SandboxAccessFile, signal: AbortSignal): Promise<void> {
    return this.#do('create', spec.id, signal, async () => {
      await mkdir(this.#path(spec.id), { recursive: true });
      const { id, labels, thread_id: threadId } = spec;
      await this.#write({ id, state: 'running', labels, access: given, threadId });
    });
  }

  start(id: SandboxId, signal: AbortSignal): Promise<void> {
    return this.#do('start', id, signal, () => this.#change(id, { state: 'running' }));
  }

  stop(id: SandboxId, signal: AbortSignal): Promise<void> {
    return this.#do('stop', id, signal, () => this.#change(id, { state: 'stopped' }));
  }

  destroy(id: SandboxId, signal: AbortSignal): Promise<void> {
    return this.#do('destroy', id, signal, () => this.#remove(id));
  }

  inspect(id: SandboxId, signal: AbortSignal): Promise<ProviderView | undefined> {
    return this.#do('inspect', id, signal, async () => {
      const sandbox = await this.look(id);
      return sandbox && this.#view(sandbox);
    });
  }

  list(signal: AbortSignal): Promise<readonly ProviderView[]> {
    return this.#do('list', undefined, signal, async () =>
      (await this.all()).map((one) => this.#view(one)),
    );
  }

  endpoints(id: SandboxId, signal: AbortSignal): Promise<Endpoints> {
    return this.#do('endpoints', id, signal, async () => {
      await access(this.#file(id));
      const place = `127.0.0.1:9/s/${id}`;
      return this.plan.endpoints ?? { httpUrl: `http://${place}`, wsUrl: `ws://${place}` };
    });
  }

  deliver(id: SandboxId, given: SandboxAccessFile, signal: AbortSignal): Promise<void> {
    return this.#do('deliver', id, signal, () => this.#change(id, { access: given }));
  }

  /** What there is, without asking as a broker would. */
  async all(): Promise<readonly FolderSandbox[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const found: FolderSandbox[] = [];
    for (const name of names.filter((one) => !one.includes(GONE))) {
      const one = await this.look(name as SandboxId);
      if (one !== undefined) found.push(one);
    }
    return found;
  }

  async look(id: SandboxId): Promise<FolderSandbox | undefined> {
    const text = await readFile(this.#file(id), 'utf8').catch(() => undefined);
    return text === undefined ? undefined : JSON.parse(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #do<T>(
    verb: string,
    id: SandboxId | undefined,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    this.calls.push(id === undefined ? verb : `${verb} ${id}`);
    await this.plan.before?.(verb, id, signal);
    const [least, most] = this.plan.delayMs ?? [0, 0];
    if (most > 0)
      await new Promise((resolve) => setTimeout(resolve, least + this.#random() * (most - least)));
    const value = await work();
    await this.plan.after?.(verb, id);
    return value;
  }

  #view({ id, state, labels }: FolderSandbox): ProviderView {
    const activity = this.plan.activity?.(id);
    return { id, state, labels, ...(activity && { activity }) };
  }

  async #change(id: SandboxId, change: Partial<FolderSandbox>): Promise<void> {
    const sandbox = await this.look(id);
    if (sandbox === undefined) throw new Error(`there is no ${id}`);
    await this.#write({ ...sandbox, ...change });
  }

  /** Whole or not at all: another process may look at any time. Where there is no folder any more, it fails. */
  async #write(sandbox: FolderSandbox): Promise<void> {
    this.#writes += 1;
    const temporary = `${this.#file(sandbox.id)}.${process.pid}.${this.#writes}`;
    await writeFile(temporary, JSON.stringify(sandbox));
    await rename(temporary, this.#file(sandbox.id));
  }

  /** In one step, so that who changes it at the same time does not bring it back. */
  async #remove(id: SandboxId): Promise<void> {
    this.#writes += 1;
    const gone = `${this.#path(id)}${GONE}${process.pid}.${this.#writes}`;
    await rename(this.#path(id), gone).catch(() => undefined);
    await rm(gone, { recursive: true, force: true });
  }

  #path(id: SandboxId): string {
    return join(this.#folder, id);
  }

  #file(id: SandboxId): string {
    return join(this.#path(id), 'sandbox.json');
  }
}

const GONE = '.gone-';
