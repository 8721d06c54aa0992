/** What a statement's text says without asking a database: whether it writes, and where its placeholders are. */
import { AilsdError } from '../../protocol/errors.js';
import { RecentMap } from './recent-map.js';

export interface Statement {
  readonly sql: string;
  /** `read` can't change anything; `change` counts rows; `other` is a definition or a setting. */
  readonly kind: 'read' | 'change' | 'other';
  readonly placeholders: number;
  /** The same with `$1`, `$2`, … for `?`. */
  readonly numberedSql: string;
}

export function parseStatement(sql: string): Statement {
  return parsed.get(sql, parse);
}

/** Statements are constants of the program, so this holds them all; it is a bound, not a size to tune. */
export const MAX_PARSED_STATEMENTS = 512;

const parsed = new RecentMap<string, Statement>(MAX_PARSED_STATEMENTS);

/** What is not SQL to look into, in one sweep: text, names, comments, PostgreSQL's dollar quotes; and the placeholder. */
const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|\?/g;

function parse(sql: string): Statement {
  let placeholders = 0;
  const numberedSql = sql.replace(TOKENS, (token) => {
    if (token !== '?') return token;
    placeholders += 1;
    return `$${placeholders}`;
  });
  return { sql, kind: kindOf(sql), placeholders, numberedSql };
}

function kindOf(sql: string): Statement['kind'] {
  const word =
    /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)*([A-Za-z]*)/.exec(sql)?.[1]?.toUpperCase() ?? '';
  if (OWNED.has(word)) {
    throw new AilsdError('INTERNAL', `${word} is the store's to say: use \`transaction\``);
  }
  if (word === 'SELECT' || word === 'VALUES') return 'read';
  // WITH may lead an INSERT: taken for a change, a SELECT behind it is merely slower.
  return CHANGES.has(word) ? 'change' : 'other';
}

const CHANGES = new Set(['INSERT', 'UPDATE', 'DELETE', 'WITH']);

/** Said by a caller, these would take the connection out of the store's hands. */
const OWNED = new Set([
  'BEGIN',
  'START',
  'COMMIT',
  'END',
  'ROLLBACK',
  'ABORT',
  'SAVEPOINT',
  'RELEASE',
]);
