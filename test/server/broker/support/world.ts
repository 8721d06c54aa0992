/** Replicas of one broker over one store, each with connections of its own, and a provider they share. */
import { join } from 'node:path';
import type { Clock } from '../../../../src/base/clock.js';
import type { BrokerConfig } from '../../../../src/server/broker/parts.js';
import type { Db } from '../../../../src/server/store/db.js';
import { migrate } from '../../../../src/server/store/migrations.js';
import { openStore } from '../../../../src/server/store/open-store.js';
import { temporaryFolder } from '../../../support/cli.js';
import { type FolderPlan, FolderProvider } from '../../../support/folder-provider.js';
import { openReplica, type Replica } from './replica.js';

export interface WorldOptions {
  /** An empty database; else a fresh SQLite file. */
  readonly storeUrl?: string | undefined;
  readonly replicas?: number | undefined;
  readonly plan?: FolderPlan | undefined;
  readonly config?: Partial<BrokerConfig> | undefined;
  /** Of each replica. */
  readonly clocks?: readonly Clock[] | undefined;
  readonly jobs?: boolean | undefined;
}

export interface World extends AsyncDisposable {
  readonly db: Db;
  readonly storeUrl: string;
  readonly cloudFolder: string;
  readonly provider: FolderProvider;
  readonly replicas: readonly Replica[];
  /** The address of one of them, by turns. */
  url(turn?: number): string;
  readonly log: string[];
  /** Resolves when the provider holds exactly what the store says is alive, and nothing is half done. */
  settled(timeoutMs?: number): Promise<void>;
}

export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const folder = temporaryFolder();
  const closers: (() => unknown)[] = [() => folder[Symbol.dispose]()];
  const close = async () => {
    for (const closer of closers.reverse()) await closer();
  };
  try {
    const storeUrl = options.storeUrl ?? join(folder.path, 'store.db');
    const open = async (): Promise<Db> => {
      const opened = await openStore(storeUrl);
      closers.push(() => opened[Symbol.asyncDispose]());
      return opened;
    };
    const db = await open();
    await migrate(db);
    const cloudFolder = join(folder.path, 'cloud');
    const provider = new FolderProvider(cloudFolder, { ...options.plan });
    const log: string[] = [];
    const replicas: Replica[] = [];
    for (let at = 0; at < (options.replicas ?? 1); at++) {
      const replica = await openReplica({
        db: await open(),
        provider,
        config: options.config,
        clock: options.clocks?.[at],
        jobs: options.jobs,
        log: (line) => log.push(line),
      });
      closers.push(() => replica[Symbol.asyncDispose]());
      replicas.push(replica);
    }
    return {
      db,
      storeUrl,
      cloudFolder,
      provider,
      replicas,
      url: (turn = 0) => replicas[turn % replicas.length]?.url ?? '',
      log,
      settled: (timeoutMs) => settled(db, provider, timeoutMs),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

export async function settled(db: Db, provider: FolderProvider, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const state = await look(db, provider);
    const alive = state.alive.join();
    if (state.half.length === 0 && alive === state.held.join() && alive === state.there.join())
      return;
    if (performance.now() > deadline) throw new Error(`not settled: ${JSON.stringify(state)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function look(db: Db, provider: FolderProvider) {
  const idsOf = async (sql: string) => (await db.query(sql)).map(({ id }) => String(id)).sort();
  return {
    half: await idsOf("SELECT id FROM sandboxes WHERE state IN ('provisioning', 'idle')"),
    alive: await idsOf("SELECT id FROM sandboxes WHERE state IN ('active', 'suspended')"),
    held: await idsOf('SELECT DISTINCT sandbox_id AS id FROM sessions WHERE ended_at IS NULL'),
    there: (await provider.all()).map(({ id }) => String(id)).sort(),
  };
}
