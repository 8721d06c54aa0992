/** What is SQLite's alone: its file, the commit that writes share, its one writer and the bounds of the wait for it. */
import { chmod, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Clock, ManualClock, systemClock } from '../../../src/base/clock.js';
import { createLogger } from '../../../src/base/logger.js';
import { openStore } from '../../../src/server/store/open-store.js';
import { openSqlite, type SqliteOptions } from '../../../src/server/store/sqlite.js';
import type { SqliteEngine } from '../../../src/server/store/sqlite-engine.js';
import { openLibsqlEngine } from '../../../src/server/store/sqlite-libsql.js';
import {
  BUSY_TIMEOUT_MS,
  MAX_BATCH_MS,
  MAX_BATCHED_WRITES,
  MAX_QUEUED_WRITES,
  SAVEPOINT,
  SqliteWriter,
} from '../../../src/server/store/sqlite-writer.js';
import { parseStatement } from '../../../src/server/store/statement.js';
import { TRANSACTION_TIMEOUT_MS } from '../../../src/server/store/transaction.js';

const folder = await mkdtemp(join(tmpdir(), 'ailsd-sqlite-'));
let files = 0;
const newFile = () => {
  files += 1;
  return join(folder, `${files}.db`);
};

afterAll(() => rm(folder, { recursive: true, force: true }));

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

function keepLog() {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  return { lines, logger: createLogger({ write, clock: systemClock, level: 'info' }) };
}

describe('the file', () => {
  it('is 0600 in a folder of 0700, and so is what SQLite puts beside it, whatever the umask', async () => {
    const umask = process.umask(0);
    try {
      const path = join(folder, 'deep', 'er', 'store.db');
      const { lines, logger } = keepLog();
      await using db = await openStore(`sqlite:${path}`, { logger });
      await db.run('CREATE TABLE t (n BIGINT)');
      // Made so, not mended afterwards.
      expect(lines).toEqual([]);
      const made = await readdir(join(folder, 'deep', 'er'));
      expect(made.sort()).toEqual(['store.db', 'store.db-shm', 'store.db-wal']);
      for (const name of made) expect(await modeOf(join(folder, 'deep', 'er', name))).toBe('600');
      expect(await modeOf(join(folder, 'deep'))).toBe('700');
      expect(await modeOf(join(folder, 'deep', 'er'))).toBe('700');
    } finally {
      process.umask(umask);
    }
  });

  it('that was open to others is closed to them, with a word in the log', async () => {
    const path = newFile();
    await (await openStore(path))[Symbol.asyncDispose]();
    await chmod(path, 0o644);
    const { lines, logger } = keepLog();
    await using db = await openStore(path, { logger });
    expect(await modeOf(path)).toBe('600');
    expect(lines).toHaveLength(1);
    expect(db.engine).toBe('sqlite');
  });

  it('is the same through a link, so that two names do not make two stores', async () => {
    const path = newFile();
    await symlink(path, `${path}.link`);
    await using through = await openStore(`${path}.link`);
    await through.run('CREATE TABLE t (n BIGINT)');
    await using direct = await openStore(path);
    expect(await direct.query('SELECT n FROM t')).toEqual([]);
  });

  it('that is no database is refused and left as it is', async () => {
    const path = newFile();
    await writeFile(path, 'a letter to my aunt, and long enough to be looked at'.repeat(50), {
      mode: 0o600,
    });
    await expect(openStore(path)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    expect((await stat(path)).size).toBe(52 * 50);
  });

  it.each([
    '',
    'sqlite:',
    ':memory:',
    'mysql://u:hunter2@h/d',
    'file:/x',
    'libsql://h',
    'http://h/x',
  ])('the name %j names no store, and is not repeated in the error', async (name) => {
    const refused = await openStore(name).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'CONFIG_INVALID' });
    expect(JSON.stringify(refused) + String(refused)).not.toContain('hunter2');
  });

  it('where no file can be is CONFIG_INVALID', async () => {
    await expect(openStore('/dev/null/store.db')).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    });
    await expect(openStore(folder)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  });
});

/** A real connection that tells what it is asked to do. */
async function watchedWriter(maxBatch = MAX_BATCHED_WRITES, clock: Clock = systemClock) {
  const engine = await openLibsqlEngine(newFile());
  engine.exec('PRAGMA foreign_keys = ON');
  engine.exec('CREATE TABLE t (n INTEGER PRIMARY KEY)');
  engine.exec('CREATE TABLE child (n INTEGER REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED)');
  const said: string[] = [];
  const watched: SqliteEngine = {
    library: engine.library,
    all: (statement, binds) => engine.all(statement, binds),
    run: (statement, binds) => engine.run(statement, binds),
    exec: (sql) => {
      said.push(sql);
      engine.exec(sql);
    },
    get inTransaction() {
      return engine.inTransaction;
    },
    close: () => engine.close(),
  };
  const writer = new SqliteWriter(watched, { clock, maxBatch });
  const write = (sql: string) => writer.write(() => watched.run(parseStatement(sql), []));
  const stored = () =>
    engine.all(parseStatement('SELECT n FROM t ORDER BY n'), []).map((row) => row['n']);
  const sessionOf = () => ({
    add: (n: number | string) => watched.run(parseStatement(`INSERT INTO t (n) VALUES (${n})`), []),
    end: () => watched.exec(SAVEPOINT.release),
    undo: () => {
      watched.exec(SAVEPOINT.goBack);
      watched.exec(SAVEPOINT.release);
    },
  });
  return {
    writer,
    write,
    stored,
    sessionOf,
    said,
    commits: () => said.filter((it) => it === 'COMMIT').length,
  };
}

describe('writes that share a commit', () => {
  it('those of one turn share one, those of later turns do not wait for more', async () => {
    const { write, commits, stored } = await watchedWriter();
    await Promise.all([1, 2, 3, 4, 5].map((n) => write(`INSERT INTO t (n) VALUES (${n})`)));
    expect(commits()).toBe(1);
    await write('INSERT INTO t (n) VALUES (6)');
    expect(commits()).toBe(2);
    expect(stored()).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('none is acknowledged before the commit', async () => {
    const { write, said } = await watchedWriter();
    const seen = await Promise.all(
      [1, 2].map((n) => write(`INSERT INTO t (n) VALUES (${n})`).then(() => [...said])),
    );
    for (const before of seen) expect(before).toEqual(['BEGIN IMMEDIATE', 'COMMIT']);
  });

  it('one that fails leaves its neighbours in the same commit', async () => {
    const { write, commits, stored } = await watchedWriter();
    const settled = await Promise.allSettled(
      [1, 1, 2].map((n) => write(`INSERT INTO t (n) VALUES (${n})`)),
    );
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(commits()).toBe(1);
    expect(stored()).toEqual([1, 2]);
  });

  it('one that ends the whole transaction fails alone: the others are done apart', async () => {
    const { write, stored } = await watchedWriter();
    const settled = await Promise.allSettled([
      write('INSERT INTO t (n) VALUES (1)'),
      write('INSERT OR ROLLBACK INTO t (n) VALUES (1)'),
      write('INSERT INTO t (n) VALUES (2)'),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(stored()).toEqual([1, 2]);
  });

  it('one that only the commit finds wrong fails alone', async () => {
    const { write, stored } = await watchedWriter();
    const settled = await Promise.allSettled([
      write('INSERT INTO t (n) VALUES (1)'),
      write('INSERT INTO child (n) VALUES (99)'),
      write('INSERT INTO t (n) VALUES (2)'),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(stored()).toEqual([1, 2]);
  });

  it('more than may share one are committed in several', async () => {
    const { write, commits } = await watchedWriter(2);
    await Promise.all([1, 2, 3, 4, 5].map((n) => write(`INSERT INTO t (n) VALUES (${n})`)));
    expect(commits()).toBe(3);
  });

  it('more than may wait are refused at once, and those before them are done', async () => {
    const { writer, stored, write } = await watchedWriter();
    let done = 0;
    const waiting = Array.from({ length: MAX_QUEUED_WRITES }, () => writer.write(() => ++done));
    await expect(async () => writer.write(() => ++done)).rejects.toMatchObject({
      code: 'BACKEND_UNAVAILABLE',
    });
    await Promise.all(waiting);
    expect(done).toBe(MAX_QUEUED_WRITES);
    await write('INSERT INTO t (n) VALUES (1)');
    expect(stored()).toEqual([1]);
  });
});

describe('transactions that share a commit', () => {
  async function openTable(options: SqliteOptions = {}) {
    const path = newFile();
    await (await openStore(path))[Symbol.asyncDispose]();
    const db = await openSqlite(path, options);
    await db.run('CREATE TABLE t (n INTEGER PRIMARY KEY)');
    await db.run('CREATE TABLE child (n INTEGER REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED)');
    const add = (...numbers: readonly number[]) =>
      db.transaction(async (tx) => {
        for (const n of numbers) await tx.run('INSERT INTO t (n) VALUES (?)', [n]);
      });
    const stored = async () => (await db.query('SELECT n FROM t ORDER BY n')).map(({ n }) => n);
    return { db, add, stored, [Symbol.asyncDispose]: () => db[Symbol.asyncDispose]() };
  }

  it('those that wait and single writes between them are one commit, and none is acknowledged before it', async () => {
    const { writer, write, said, stored, sessionOf } = await watchedWriter();
    const seen: string[] = [];
    const transaction = (n: number) =>
      writer
        .transaction(async () => {
          const session = sessionOf();
          session.add(n);
          await new Promise((resolve) => setImmediate(resolve));
          session.end();
        })
        .then(() => seen.push(said.at(-1) ?? ''));
    await Promise.all([transaction(1), write('INSERT INTO t (n) VALUES (2)'), transaction(3)]);
    expect(seen).toEqual(['COMMIT', 'COMMIT']);
    expect(said.filter((one) => /^(BEGIN|COMMIT)/.test(one))).toEqual([
      'BEGIN IMMEDIATE',
      'COMMIT',
    ]);
    expect(stored()).toEqual([1, 2, 3]);
  });

  it('nobody joins a commit for longer than its time, however many come', async () => {
    const clock = new ManualClock();
    const { writer, commits, sessionOf } = await watchedWriter(MAX_BATCHED_WRITES, clock);
    const slow = (n: number) =>
      writer.transaction(async () => {
        sessionOf().add(n);
        await clock.advance(MAX_BATCH_MS / 2);
        sessionOf().end();
      });
    await Promise.all([1, 2, 3, 4, 5].map(slow));
    expect(commits()).toBe(3);
  });

  it('one that fails is undone alone and whole', async () => {
    await using table = await openTable();
    const settled = await Promise.allSettled([
      table.add(1),
      table.add(2, 3, 1),
      table.add(4),
      table.db.transaction(async (tx) => {
        await tx.run('INSERT INTO t (n) VALUES (5)');
        throw new Error('thought better of it');
      }),
      table.add(6),
    ]);
    expect(settled.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(await table.stored()).toEqual([1, 4, 6]);
  });

  it('they run one after another: each sees what those before it did, and nothing of one that is undone', async () => {
    await using table = await openTable();
    await table.add(0);
    const next = (fails: boolean) =>
      table.db.transaction(async (tx) => {
        const [row] = await tx.query('SELECT MAX(n) AS last FROM t');
        await new Promise((resolve) => setImmediate(resolve));
        await tx.run('INSERT INTO t (n) VALUES (?)', [Number(row?.['last']) + 1]);
        if (fails) throw new Error('no');
      });
    await Promise.allSettled(Array.from({ length: 12 }, (_, at) => next(at % 4 === 2)));
    expect(await table.stored()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('what only the commit finds wrong, or what ends everything, takes none of the others with it', async () => {
    await using table = await openTable();
    const run = (...statements: readonly string[]) =>
      table.db.transaction(async (tx) => {
        for (const sql of statements) await tx.run(sql);
      });
    const settled = await Promise.allSettled([
      table.add(1),
      run('INSERT INTO t (n) VALUES (2)', 'INSERT INTO child (n) VALUES (99)'),
      table.add(3),
      run('INSERT INTO t (n) VALUES (4)', 'INSERT OR ROLLBACK INTO t (n) VALUES (1)'),
      table.add(5),
    ]);
    expect(settled.map(({ status }) => status[0])).toEqual(['f', 'r', 'f', 'r', 'f']);
    expect(await table.stored()).toEqual([1, 3, 5]);
  });

  it('one that never ends is undone in time, and those before it are kept', async () => {
    const clock = new ManualClock();
    await using table = await openTable({ clock });
    const before = table.add(1);
    const endless = table.db.transaction(async (tx) => {
      await tx.run('INSERT INTO t (n) VALUES (2)');
      await new Promise(() => undefined);
    });
    const refused = expect(endless).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    const after = table.add(3);
    while (clock.sleeping === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(TRANSACTION_TIMEOUT_MS);
    await Promise.all([before, refused, after]);
    expect(await table.stored()).toEqual([1, 3]);
  });
});

describe('the one writer', () => {
  it('a lock held by another for too long is BACKEND_UNAVAILABLE, and the event loop goes on meanwhile', async () => {
    const path = newFile();
    const clock = new ManualClock();
    await using holder = await openStore(path);
    await using db = await openSqlite(path, { clock });
    await holder.run('CREATE TABLE t (n BIGINT)');
    await holder.transaction(async (tx) => {
      await tx.run('INSERT INTO t (n) VALUES (1)');
      const waiting = db.run('INSERT INTO t (n) VALUES (2)').catch((error: unknown) => error);
      while (clock.sleeping === 0) await new Promise((resolve) => setImmediate(resolve));
      expect(await db.query('SELECT n FROM t')).toEqual([]);
      await clock.advance(BUSY_TIMEOUT_MS + 100);
      expect(await waiting).toMatchObject({
        code: 'BACKEND_UNAVAILABLE',
        row: { retryable: true },
      });
    });
    await db.run('INSERT INTO t (n) VALUES (3)');
    expect(await db.query('SELECT n FROM t ORDER BY n')).toEqual([{ n: 1 }, { n: 3 }]);
  });

  it('a transaction that never ends is undone, and the next writer has its turn', async () => {
    const clock = new ManualClock();
    const path = newFile();
    await (await openStore(path))[Symbol.asyncDispose]();
    await using db = await openSqlite(path, { clock });
    await db.run('CREATE TABLE t (n BIGINT)');
    const endless = db.transaction(async (tx) => {
      await tx.run('INSERT INTO t (n) VALUES (1)');
      await new Promise(() => undefined);
    });
    const refused = expect(endless).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    const next = db.run('INSERT INTO t (n) VALUES (2)');
    while (clock.sleeping === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(TRANSACTION_TIMEOUT_MS);
    await refused;
    await next;
    expect(await db.query('SELECT n FROM t')).toEqual([{ n: 2 }]);
  });

  it('waits for the disk at each commit, lets readers go on, and minds foreign keys', async () => {
    await using db = await openStore(newFile());
    await db.run('CREATE TABLE t (n BIGINT)');
    expect(await db.query('PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    expect(await db.query('PRAGMA synchronous')).toEqual([{ synchronous: 2 }]);
    expect(await db.query('PRAGMA foreign_keys')).toEqual([{ foreign_keys: 1 }]);
  });
});
