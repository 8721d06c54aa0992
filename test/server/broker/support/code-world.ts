/** Replicas of a broker over one store, whose sandboxes run real processes, and calls of code to them. */
import type { Secret } from '../../../../src/base/secret.js';
import type { CodeSettings } from '../../../../src/server/broker/code/code.js';
import type { Provider } from '../../../../src/server/providers/provider.js';
import type { Db } from '../../../../src/server/store/db.js';
import { migrate } from '../../../../src/server/store/migrations.js';
import { openStore } from '../../../../src/server/store/open-store.js';
import { temporaryFolder } from '../../../support/cli.js';
import { DaemonProvider } from '../../../support/daemon-provider.js';
import { type Asked, ask, type Reply } from './client.js';
import { BROKER_CONFIG, openReplica, type Replica } from './replica.js';

export interface CodeWorldOptions {
  readonly storeUrl?: string | undefined;
  readonly replicas?: number | undefined;
  readonly code?: CodeSettings | undefined;
  readonly inviteSecret?: Secret | undefined;
  /** In the place of the store that a replica would have. */
  readonly wrap?: ((db: Db) => Db) | undefined;
  readonly provider?: ((daemon: DaemonProvider) => Provider) | undefined;
}

export interface CodeWorld extends AsyncDisposable {
  readonly db: Db;
  readonly storeUrl: string;
  readonly provider: DaemonProvider;
  readonly replicas: readonly Replica[];
  readonly log: string[];
  url(turn?: number): string;
  code(body: object, asked?: Asked & { readonly turn?: number }): Promise<Reply>;
  rows(): Promise<readonly Row[]>;
}

type Row = Readonly<Record<string, string | number | Uint8Array | null>>;

const LIMITS = { ...BROKER_CONFIG.limits, commands: 256, shells: 16 };

export async function openCodeWorld(options: CodeWorldOptions = {}): Promise<CodeWorld> {
  const folder = temporaryFolder();
  const closers: (() => PromiseLike<void>)[] = [async () => folder[Symbol.dispose]()];
  const close = async (): Promise<void> => {
    for (const one of closers.reverse()) await one();
  };
  try {
    const storeUrl = options.storeUrl ?? `${folder.path}/store.db`;
    const first = await openStore(storeUrl);
    await migrate(first);
    closers.push(() => first[Symbol.asyncDispose]());
    const provider = await DaemonProvider.open();
    closers.push(() => provider[Symbol.asyncDispose]());
    const log: string[] = [];
    const replicas: Replica[] = [];
    for (let at = 0; at < (options.replicas ?? 1); at++) {
      const own = at === 0 ? first : await openStore(storeUrl);
      if (at > 0) closers.push(() => own[Symbol.asyncDispose]());
      const replica = await openReplica({
        db: options.wrap?.(own) ?? own,
        provider: options.provider?.(provider) ?? provider,
        config: { limits: LIMITS },
        code: options.code,
        inviteSecret: options.inviteSecret,
        log: (line) => log.push(line),
      });
      closers.push(() => replica[Symbol.asyncDispose]());
      replicas.push(replica);
    }
    const url = (turn = 0): string => replicas[turn % replicas.length]?.url ?? '';
    return {
      db: first,
      storeUrl,
      provider,
      replicas,
      log,
      url,
      code: (body, asked = {}) =>
        ask(url(asked.turn), 'POST', '/v1/code/execute', {
          ...asked,
          body: { thread_id: 'thr_code', language: 'bash', ...body },
        }),
      rows: () => first.query('SELECT * FROM sandbox_invocations ORDER BY created_at, id'),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
