/** Runs a suite on both stores: an embedded SQLite file, and a real PostgreSQL where this machine can run one. */
import { afterAll, describe, it } from 'vitest';
import { startPostgres } from '../../../support/postgres.js';

export interface Engine {
  readonly name: 'SQLite' | 'PostgreSQL';
  /** A fresh store; undefined where the world makes a file of its own. */
  storeUrl(): Promise<string | undefined>;
  /** SQLite is for one process. */
  readonly mostReplicas: number;
}

const postgres = await startPostgres();

afterAll(async () => {
  if (postgres.kind === 'started') await postgres.server[Symbol.asyncDispose]();
});

const SQLITE: Engine = { name: 'SQLite', storeUrl: async () => undefined, mostReplicas: 1 };

export function describeOnBoth(title: string, suite: (engine: Engine) => void): void {
  describe(`${title}, on SQLite`, () => suite(SQLITE));
  describeOnPostgres(title, suite);
}

export function describeOnPostgres(title: string, suite: (engine: Engine) => void): void {
  if (postgres.kind === 'skipped') {
    describe.skip(`${title}, on PostgreSQL`, () => it(postgres.reason, () => undefined));
    return;
  }
  const { server } = postgres;
  const engine: Engine = {
    name: 'PostgreSQL',
    storeUrl: () => server.createDatabase(),
    mostReplicas: 3,
  };
  describe(`${title}, on PostgreSQL`, () => suite(engine));
}
