/** `ailsd` at a broker of the test's own, with a cache of its own. */
import { join } from 'node:path';
import { ailsd, type CliResult, temporaryFolder } from '../../support/cli.js';
import {
  type FakeBroker,
  type FakeBrokerOptions,
  startFakeBroker,
} from '../../support/fake-broker.js';

export interface AtBroker extends AsyncDisposable {
  readonly broker: FakeBroker;
  readonly env: Readonly<Record<string, string>>;
  /** Where sessions are remembered. */
  readonly cache: string;
  run(...args: string[]): Promise<CliResult>;
  /** With --json, both streams read. */
  json(...args: string[]): Promise<JsonResult>;
}

export interface JsonResult {
  readonly code: number | null;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers as any script would
  readonly document: any;
  // biome-ignore lint/suspicious/noExplicitAny: the same
  readonly error: any;
}

/** What a terminal would act on, were it printed as it is. */
export const HOSTILE = 'a\u001b[2J\u202eb\n';
export const ESCAPED = 'a\\x1b[2J\\u202eb\\n';

export async function atBroker(options: FakeBrokerOptions = {}): Promise<AtBroker> {
  const broker = await startFakeBroker(options);
  const folder = temporaryFolder();
  const env = { ...broker.env, AILSD_CACHE_DIR: join(folder.path, 'cache') };
  return {
    broker,
    env,
    cache: join(folder.path, 'cache', 'sessions'),
    run: (...args) => ailsd(args, { env }),
    json: async (...args) => {
      const { code, stdout, stderr } = await ailsd([...args, '--json'], { env });
      const document = stdout === '' ? undefined : JSON.parse(stdout);
      return { code, document, error: stderr === '' ? undefined : JSON.parse(stderr).error };
    },
    async [Symbol.asyncDispose]() {
      folder[Symbol.dispose]();
      await broker[Symbol.asyncDispose]();
    },
  };
}
