/** What every engine of the store promises, whoever drives it: values, statements, transactions, many handles at once. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Bind, Db } from '../../src/server/store/db.js';

export interface StoreKind {
  readonly name: string;
  /** A new, empty store. */
  create(): Promise<StorePlace>;
}

export interface StorePlace extends AsyncDisposable {
  /** Another handle on it, as another replica would have. */
  open(): Promise<Db>;
}

/** Opens two handles on one new store for the tests of a block. */
export function useReplicas(kind: StoreKind, prepare: (db: Db) => Promise<unknown>) {
  let place: StorePlace | undefined;
  const handles: Db[] = [];
  beforeAll(async () => {
    place = await kind.create();
    handles.push(await place.open(), await place.open());
    await prepare(at(0));
  });
  afterAll(async () => {
    for (const handle of handles) await handle[Symbol.asyncDispose]();
    await place?.[Symbol.asyncDispose]();
  });
  const at = (index: number): Db => {
    const handle = handles[index % handles.length];
    if (handle === undefined) throw new Error('the store is not open');
    return handle;
  };
  return { at };
}

export function describeStore(kind: StoreKind): void {
  describe(`a store on ${kind.name}`, () => {
    const { at } = useReplicas(kind, async (db) => {
      const bytes = db.engine === 'sqlite' ? 'BLOB' : 'BYTEA';
      await db.run(
        `CREATE TABLE samples (id BIGINT PRIMARY KEY, words TEXT, whole BIGINT, broken DOUBLE PRECISION, bytes ${bytes})`,
      );
      await db.run('CREATE TABLE names (name TEXT PRIMARY KEY)');
      await db.run('CREATE TABLE counters (name TEXT PRIMARY KEY, n BIGINT NOT NULL)');
    });
    let samples = 0;
    const keep = async (column: string, value: Bind) => {
      samples += 1;
      await at(0).run(`INSERT INTO samples (id, ${column}) VALUES (?, ?)`, [samples, value]);
      const [row] = await at(1).query(`SELECT ${column} AS kept FROM samples WHERE id = ?`, [
        samples,
      ]);
      return row?.['kept'];
    };

    describe('values', () => {
      it('any text without NUL comes back as it was', async () => {
        const text = fc
          .string({ unit: 'binary', maxLength: 60 })
          .filter((it) => !it.includes('\0'));
        await fc.assert(
          fc.asyncProperty(text, async (it) => {
            expect(await keep('words', it)).toBe(it);
          }),
          {
            numRuns: 60,
            examples: [[''], ["' OR 1=1 --"], ['$1 ? $$'], ['é\u0301😀\ufeff'], ['1']],
          },
        );
      });

      it('any whole number within ±(2^53 - 1) comes back as a number, also bound as bigint', async () => {
        await fc.assert(
          fc.asyncProperty(fc.maxSafeInteger(), fc.boolean(), async (it, asBigint) => {
            expect(await keep('whole', asBigint ? BigInt(it) : it)).toBe(it);
          }),
          {
            numRuns: 60,
            examples: [
              [Number.MAX_SAFE_INTEGER, true],
              [-Number.MAX_SAFE_INTEGER, false],
              [0, false],
            ],
          },
        );
      });

      it('a whole number is one to the engine too: as text it has no decimal point', async () => {
        const bound = 'SELECT CAST(? AS TEXT) AS words';
        expect(await at(0).query(bound, [7])).toEqual([{ words: '7' }]);
        expect(await at(0).query(bound, [7n])).toEqual([{ words: '7' }]);
      });

      it('any finite number comes back to the last bit', async () => {
        const number = fc.double({ noNaN: true, noDefaultInfinity: true });
        await fc.assert(
          fc.asyncProperty(number, async (it) => {
            expect(await keep('broken', it)).toBe(it === 0 ? 0 : it);
          }),
          { numRuns: 60, examples: [[5e-324], [Number.MAX_VALUE], [-0], [0.1]] },
        );
      });

      it('any bytes come back, as a plain Uint8Array, also from a view and from a Buffer', async () => {
        await fc.assert(
          fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (it) => {
            for (const form of [
              it,
              Buffer.from(it),
              new Uint8Array([9, ...it, 9]).subarray(1, -1),
            ]) {
              const kept = await keep('bytes', form);
              expect(kept).toEqual(new Uint8Array(it));
              expect(Object.getPrototypeOf(kept)).toBe(Uint8Array.prototype);
            }
          }),
          { numRuns: 20, examples: [[new Uint8Array()]] },
        );
      });

      it('null comes back as null', async () => {
        for (const column of ['words', 'whole', 'broken', 'bytes']) {
          expect(await keep(column, null)).toBeNull();
        }
      });

      it.each([
        ['text with NUL', 'a\0b'],
        ['NaN', Number.NaN],
        ['infinity', Number.NEGATIVE_INFINITY],
        ['a boolean', true],
        ['a date', new Date()],
        ['nothing', undefined],
        ['an object', { toString: () => 'x' }],
        ['a list', ['x']],
        ['other bytes', new Uint16Array(1)],
        ['a function', () => 1],
        ['a symbol', Symbol('x')],
        ['too large a bigint', 2n ** 53n],
      ])('%s is refused before the driver sees it', async (_what, value) => {
        for (const call of ['run', 'query'] as const) {
          // Past the types, as a value from a careless caller comes.
          const refused = Reflect.apply(at(0)[call], at(0), [
            'INSERT INTO samples (id, words) VALUES (?, ?)',
            [-1, value],
          ]);
          await expect(refused).rejects.toMatchObject({ code: 'INTERNAL', name: 'AilsdError' });
        }
        expect(await at(0).query('SELECT id FROM samples WHERE id = -1')).toEqual([]);
      });

      it('a whole number too large for a number is an error, not a rounded one', async () => {
        await expect(
          at(0).query('SELECT CAST(9007199254740993 AS BIGINT) AS n'),
        ).rejects.toMatchObject({
          code: 'INTERNAL',
        });
      });
    });

    describe('statements', () => {
      it('values for more or fewer placeholders than there are is an error', async () => {
        for (const binds of [[], ['a'], ['a', 'b', 'c']]) {
          await expect(
            at(0).query('SELECT CAST(? AS TEXT) AS a, CAST(? AS TEXT) AS b', binds),
          ).rejects.toMatchObject({ code: 'INTERNAL' });
        }
      });

      it('a question mark in text, a name or a comment is no placeholder', async () => {
        const rows = await at(0).query(
          `SELECT '?''?' AS "a?", CAST(? AS TEXT) AS b -- ? and '
           /* ? " */ WHERE 'x' <> ?`,
          ['1', 'y'],
        );
        expect(rows).toEqual([{ 'a?': "?'?", b: '1' }]);
      });

      it('a statement tells how many rows it changed', async () => {
        const db = at(0);
        expect(await db.run('CREATE TABLE changes (n BIGINT)')).toBe(0);
        expect(await db.run('INSERT INTO changes (n) VALUES (?), (?), (?)', [1, 2, 3])).toBe(3);
        expect(await db.run('CREATE INDEX changes_by_n ON changes (n)')).toBe(0);
        expect(await db.run('UPDATE changes SET n = n + 1 WHERE n > ?', [1])).toBe(2);
        expect(await db.run('SELECT n FROM changes')).toBe(0);
        expect(await db.run('DELETE FROM changes WHERE n = ? RETURNING n', [3])).toBe(1);
        expect(await db.run('DELETE FROM changes WHERE n = ?', [99])).toBe(0);
        expect(await db.query('SELECT COUNT(*) AS n, SUM(n) AS s FROM changes')).toEqual([
          { n: 2, s: 5 },
        ]);
      });

      it('beginning or ending a transaction by statement is refused', async () => {
        for (const sql of ['BEGIN', ' commit', '/* x */ ROLLBACK', '-- x\nSAVEPOINT a', 'end']) {
          await expect(at(0).run(sql)).rejects.toMatchObject({ code: 'INTERNAL' });
        }
      });

      it('what the engine refuses is INTERNAL, with its words for the log alone', async () => {
        const refused = at(0).query('SELECT a FROM nowhere');
        await expect(refused).rejects.toMatchObject({
          code: 'INTERNAL',
          message: 'the database refused a statement',
          internal: expect.stringContaining('nowhere'),
        });
      });

      it("of many writes at once only those fail that are wrong, and their neighbours' rows are there", async () => {
        const names = Array.from({ length: 100 }, (_, index) => `n${index % 80}`);
        const settled = await Promise.allSettled(
          names.map((name) => at(0).run('INSERT INTO names (name) VALUES (?)', [name])),
        );
        expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(20);
        expect(await at(1).query('SELECT COUNT(*) AS n FROM names')).toEqual([{ n: 80 }]);
      });

      it("the clock is the database's and goes on", async () => {
        const first = await at(0).now();
        expect(Math.abs(first - Date.now())).toBeLessThan(5_000);
        expect(await at(1).now()).toBeGreaterThanOrEqual(first);
        expect(await at(0).transaction((tx) => tx.now())).toBeGreaterThanOrEqual(first);
      });
    });

    describe('transactions', () => {
      const counter = async (name: string) => {
        await at(0).run('INSERT INTO counters (name, n) VALUES (?, 0)', [name]);
        return async () => {
          const [row] = await at(1).query('SELECT n FROM counters WHERE name = ?', [name]);
          return row?.['n'];
        };
      };
      const set = (db: Db, name: string, n: number) =>
        db.run('UPDATE counters SET n = ? WHERE name = ?', [n, name]);

      it('what it did is there when it resolves, and not before', async () => {
        const read = await counter('commit');
        const answer = await at(0).transaction(async (tx) => {
          await set(tx, 'commit', 1);
          expect(await read()).toBe(0);
          expect(await tx.query('SELECT n FROM counters WHERE name = ?', ['commit'])).toEqual([
            { n: 1 },
          ]);
          return 'answer';
        });
        expect(answer).toBe('answer');
        expect(await read()).toBe(1);
      });

      it('an error of the work undoes everything and comes out as it is', async () => {
        const read = await counter('rollback');
        const error = new Error('changed my mind');
        await expect(
          at(0).transaction(async (tx) => {
            await set(tx, 'rollback', 1);
            throw error;
          }),
        ).rejects.toBe(error);
        expect(await read()).toBe(0);
      });

      it('a statement that failed undoes everything, even if the work goes on', async () => {
        const read = await counter('swallowed');
        const attempt = at(0).transaction(async (tx) => {
          await set(tx, 'swallowed', 1);
          await tx
            .run('INSERT INTO counters (name, n) VALUES (?, 0)', ['swallowed'])
            .catch(() => 0);
          return 'all is well';
        });
        await expect(attempt).rejects.toMatchObject({ code: 'INTERNAL' });
        expect(await read()).toBe(0);
      });

      it('one inside another is an error, and so is speaking past it', async () => {
        const read = await counter('nested');
        const db = at(0);
        for (const inner of [
          (tx: Db) => tx.transaction(async () => 1),
          () => db.transaction(async () => 1),
          () => set(db, 'nested', 1),
          () => db.query('SELECT n FROM counters'),
          () => db.now(),
        ]) {
          const outer = db.transaction(async (tx) => void (await inner(tx)));
          await expect(outer).rejects.toMatchObject({ code: 'INTERNAL' });
        }
        expect(await read()).toBe(0);
      });

      it('after its end its handle is dead, and the store lives on', async () => {
        const read = await counter('late');
        const kept = await at(0).transaction(async (tx) => ({ tx }));
        await expect(set(kept.tx, 'late', 1)).rejects.toMatchObject({ code: 'INTERNAL' });
        await set(at(0), 'late', 2);
        expect(await read()).toBe(2);
      });

      it('two handles that read, think and write lose nothing', async () => {
        const read = await counter('race');
        const rounds = 40;
        await Promise.all(
          Array.from({ length: rounds }, (_, index) =>
            at(index).transaction(async (tx) => {
              const [row] = await tx.query('SELECT n FROM counters WHERE name = ?', ['race']);
              await new Promise((resolve) => setImmediate(resolve));
              await set(tx, 'race', Number(row?.['n']) + 1);
            }),
          ),
        );
        expect(await read()).toBe(rounds);
      });

      it('single writes and transactions of two handles take turns', async () => {
        const read = await counter('mixed');
        const one = (db: Db) => db.run('UPDATE counters SET n = n + 1 WHERE name = ?', ['mixed']);
        await Promise.all(
          Array.from({ length: 60 }, (_, index) =>
            index % 5 === 0 ? at(index).transaction((tx) => one(tx)) : one(at(index)),
          ),
        );
        expect(await read()).toBe(60);
      });
    });

    it('what was asked before the end is done, what comes after is refused', async () => {
      await using place = await kind.create();
      const db = await place.open();
      await db.run('CREATE TABLE lasts (n BIGINT)');
      const asked = db.run('INSERT INTO lasts (n) VALUES (1)');
      await Promise.all([db[Symbol.asyncDispose](), asked]);
      await db[Symbol.asyncDispose]();
      await expect(db.query('SELECT 1 AS n')).rejects.toMatchObject({
        code: 'BACKEND_UNAVAILABLE',
      });
      await expect(db.run('DELETE FROM lasts')).rejects.toMatchObject({
        code: 'BACKEND_UNAVAILABLE',
      });
      await using again = await place.open();
      expect(await again.query('SELECT n FROM lasts')).toEqual([{ n: 1 }]);
    });
  });
}
