/** How PostgreSQL's values become those of `Row`: everything not named here stays the text the server sent. */
import pg from 'pg';

const { builtins } = pg.types;

/** `toRow` turns bigint to number, and refuses what would be rounded. */
const PARSERS = new Map<number, (text: string) => unknown>([
  [builtins.INT2, Number],
  [builtins.INT4, Number],
  [builtins.INT8, BigInt],
  [builtins.FLOAT4, Number],
  [builtins.FLOAT8, Number],
  // What SUM over BIGINT gives; SQLite gives a whole number there.
  [builtins.NUMERIC, (text) => (/^-?\d+$/.test(text) ? BigInt(text) : Number(text))],
  // A comparison in a SELECT is 0 or 1 in SQLite.
  [builtins.BOOL, (text) => (text === 't' ? 1 : 0)],
]);

export const POSTGRES_TYPES: pg.CustomTypesConfig = {
  getTypeParser(oid: number) {
    if (oid === builtins.BYTEA) return pg.types.getTypeParser(builtins.BYTEA, 'text');
    return PARSERS.get(oid) ?? ((text: string) => text);
  },
};
