/** `migrate`: brings the store's tables up to date, or says what is missing. */
import { migrate, pendingMigrations } from '../store/migrations.js';
import { openStore } from '../store/open-store.js';
import type { Inputs } from './config.js';
import { configOf, type World } from './place.js';

export async function migrateStore(input: Inputs['migrate'], world: World): Promise<object> {
  const config = await configOf(input.dir, world);
  await using db = await openStore(config.store, { logger: world.logger });
  if (input.check) return { pending: await pendingMigrations(db), applied: [] };
  const applied = await migrate(db);
  return { pending: [], applied };
}
