/** One step of the tables' history. */
import type { Db } from './db.js';

export interface Migration {
  /** Recorded in the database: once released, neither the name nor the statements change. */
  readonly name: string;
  /** In the subset both engines share, but for what only one can say. */
  readonly statements: (engine: Db['engine']) => readonly string[];
}
