/** The operations of the server program by name, each a function of one document that answers with another. */
import {
  addClient,
  disableClient,
  enableClient,
  listClients,
  rotateClientSecret,
} from './clients.js';
import { type Inputs, type OperationName, parseInput } from './config.js';
import { init } from './init.js';
import { listKeys, rotateKeys } from './keys.js';
import { migrateStore } from './migrate.js';
import type { World } from './place.js';
import { addTrust, listTrust, removeTrust } from './trust.js';
import {
  addUser,
  disableUser,
  enableUser,
  endLogins,
  listUsers,
  removeUser,
  setPassword,
  setScopes,
} from './users.js';

/** All but those that serve, and so do not answer and end. */
export type AnsweringOperation = Exclude<OperationName, 'start' | 'dev'>;

const OPERATIONS: {
  readonly [N in AnsweringOperation]: (input: Inputs[N], world: World) => Promise<object>;
} = {
  init,
  migrate: migrateStore,
  'user-add': addUser,
  'user-passwd': setPassword,
  'user-logout': endLogins,
  'user-disable': disableUser,
  'user-enable': enableUser,
  'user-rm': removeUser,
  'user-scopes': setScopes,
  'user-list': listUsers,
  'client-add': addClient,
  'client-list': listClients,
  'client-disable': disableClient,
  'client-enable': enableClient,
  'client-rotate-secret': rotateClientSecret,
  'keys-list': listKeys,
  'keys-rotate': rotateKeys,
  'trust-add': addTrust,
  'trust-list': listTrust,
  'trust-rm': removeTrust,
};

export function runOperation<N extends AnsweringOperation>(
  name: N,
  given: unknown,
  world: World,
): Promise<object> {
  return OPERATIONS[name](parseInput(name, given), world);
}
