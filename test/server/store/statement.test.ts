/** Reading a statement's text: placeholders are found where they are and nowhere else. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecentMap } from '../../../src/server/store/recent-map.js';
import { parseStatement } from '../../../src/server/store/statement.js';

describe('a statement', () => {
  const inert = fc.constantFrom(
    "'?'",
    "'it''s ? '",
    '"a?"',
    '"a""?"',
    '-- ? \' "\n',
    "/* ? ' */",
    '$$ ? $$',
    "$tag$ ? $$ ' $tag$",
    ' a + b ',
    '(',
    ',',
  );

  it('has its placeholders numbered in order, and nothing else of it changed', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(inert, fc.constant('?')), { maxLength: 20 }), (pieces) => {
        let count = 0;
        const numbered = pieces.map((it) => (it === '?' ? `$${++count}` : it));
        const parsed = parseStatement(`SELECT ${pieces.join(' ')}`);
        expect(parsed.numberedSql).toBe(`SELECT ${numbered.join(' ')}`);
        expect(parsed.placeholders).toBe(count);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['SELECT 1', 'read'],
    ['  \n-- x\n/* y */ select 1', 'read'],
    ['VALUES (1)', 'read'],
    ['WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x', 'change'],
    ['insert INTO t VALUES (1)', 'change'],
    ['UPDATE t SET n = 1', 'change'],
    ['DELETE FROM t', 'change'],
    ['CREATE TABLE t (n BIGINT)', 'other'],
    ['PRAGMA x', 'other'],
    ['SELECTED', 'other'],
    ['', 'other'],
  ])('%j is a %s', (sql, kind) => {
    expect(parseStatement(sql).kind).toBe(kind);
  });
});

describe('a map of recent things', () => {
  it('never holds more than it may, and forgets what was not asked for the longest', () => {
    const map = new RecentMap<string, string>(2);
    const made: string[] = [];
    const get = (key: string) =>
      map.get(key, (it) => {
        made.push(it);
        return it;
      });
    for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) expect(get(key)).toBe(key);
    expect(made).toEqual(['a', 'b', 'c', 'b']);
    expect(map.size).toBe(2);
  });
});
