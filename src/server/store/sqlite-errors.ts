/** What SQLite's result codes mean to the rooms above. */
import { AilsdError } from '../../protocol/errors.js';

/** Somebody else holds the lock: worth another try. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

export function toSqliteError(error: unknown): AilsdError {
  if (error instanceof AilsdError) return error;
  const code = primaryCode(error);
  const parts = { cause: error, internal: error instanceof Error ? error.message : String(error) };
  switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return new AilsdError('BACKEND_UNAVAILABLE', 'the database is busy', parts);
    case SQLITE_FULL:
      return new AilsdError('BACKEND_UNAVAILABLE', "the database's disk is full", {
        ...parts,
        hint: 'free space where the database is; nothing that was acknowledged is lost',
      });
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
      return new AilsdError(
        'BACKEND_UNAVAILABLE',
        'the database can not be read or written',
        parts,
      );
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return new AilsdError('CONFIG_INVALID', 'the database file can not be opened for writing', {
        ...parts,
        hint: 'make the database file and its folder yours',
      });
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return new AilsdError('CONFIG_INVALID', 'the database file is damaged or no database', {
        ...parts,
        hint: 'name another file, or restore it from a backup',
      });
    default:
      return new AilsdError('INTERNAL', 'the database refused a statement', parts);
  }
}

/** https://sqlite.org/rescode.html: the low byte of an extended code is its primary one. */
const SQLITE_PERM = 3;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_NOMEM = 7;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  // libsql and node:sqlite, in this order.
  if ('rawCode' in error && typeof error.rawCode === 'number') return error.rawCode & 0xff;
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode & 0xff;
  return undefined;
}
