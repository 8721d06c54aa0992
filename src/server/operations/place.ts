/** Where an operation works: the configuration of a data folder and its open store. */
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import { readConfig, type ServerConfig, type Variables } from '../config.js';
import { Audit, type AuditRecord } from '../store/audit.js';
import type { Db } from '../store/db.js';
import { pendingMigrations } from '../store/migrations.js';
import { openStore } from '../store/open-store.js';
import { readConfigFile } from './data-folder.js';

/** What comes from the process. */
export interface World {
  readonly variables: Variables;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Place {
  readonly config: ServerConfig;
  readonly db: Db;
}

export async function configOf(
  folder: string,
  world: World,
  said?: { readonly listen?: string | undefined; readonly url?: string | undefined },
): Promise<ServerConfig> {
  const file = await readConfigFile(folder);
  return readConfig({ folder, file, variables: world.variables, ...(said && { said }) });
}

/** Opens the store for the time of the work; its tables must be what this program knows. */
export async function inPlace<T>(
  folder: string,
  world: World,
  work: (place: Place) => Promise<T>,
): Promise<T> {
  const config = await configOf(folder, world);
  await using db = await openStore(config.store, { logger: world.logger });
  const pending = await pendingMigrations(db);
  if (pending.length > 0) {
    throw new AilsdError('CONFIG_INVALID', 'the store is of an older version', {
      details: { pending },
      hint: 'bring it up to date with `ailsd server migrate`, or start the server',
    });
  }
  return await work({ config, db });
}

/** A change and its line in the audit: both, or neither. */
export function audited<T>(
  db: Db,
  change: (tx: Db) => Promise<{ readonly result: T; readonly record: AuditRecord }>,
): Promise<T> {
  return db.transaction(async (tx) => {
    const { result, record } = await change(tx);
    await new Audit(tx).record({ ...record, actor: OPERATOR });
    return result;
  });
}

/** Whoever has the data folder: the operating system knows who that was. */
const OPERATOR = 'operator';

export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

/** How many of anything a list shows; more than that is a matter for the database's own tools. */
export const LIST_MAX = 10_000;
