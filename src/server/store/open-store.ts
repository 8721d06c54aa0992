/** Opens the store a URL names: a PostgreSQL server, or a SQLite file. */
import { type Logger, silentLogger } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Db } from './db.js';

export interface StoreOptions {
  readonly logger?: Logger | undefined;
}

/** `postgres://…`, `sqlite:PATH` or a path. Only the driver that is needed is loaded. Tables are `migrate`'s to make. */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Db> {
  const logger = options.logger ?? silentLogger;
  if (/^postgres(ql)?:\/\//i.test(url)) {
    const { openPostgres } = await import('./postgres.js');
    return openPostgres(url, { logger });
  }
  const path = url.replace(/^sqlite:/i, '');
  if (path === '' || path === ':memory:' || /^[a-z][a-z0-9+.-]+:/i.test(path)) {
    // Not quoted: what was meant as a URL may hold a password.
    throw new AilsdError('CONFIG_INVALID', 'that does not name a store', {
      hint: 'use postgres://USER:PASSWORD@HOST/DATABASE, sqlite:PATH or the path of a file',
    });
  }
  const { openSqlite } = await import('./sqlite.js');
  const { prepareSqliteFile } = await import('./sqlite-file.js');
  return openSqlite(await prepareSqliteFile(path, logger));
}
