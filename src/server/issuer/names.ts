/** What people call whoever a token speaks for: the account's name, or for a service that of its client. */

import type { Principal } from '../../protocol/principal.js';
import { Clients } from '../store/clients.js';
import type { Db } from '../store/db.js';
import { Users } from '../store/users.js';
import { isUnavailable } from './unavailable.js';

/** A name is a courtesy: while the store is away there is none, and that is no error. */
export function nameFinder(db: Db): (principal: Principal) => Promise<string | undefined> {
  const users = new Users(db);
  const clients = new Clients(db);
  return async ({ kind, sub }) => {
    try {
      return (await (kind === 'service' ? clients : users).find(sub))?.name;
    } catch (error) {
      if (isUnavailable(error)) return undefined;
      throw error;
    }
  };
}
