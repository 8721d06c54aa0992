/** Users as the library asks for them: who they are, and nothing of those who may not sign in. */
import type { Account, KoaContextWithOIDC } from 'oidc-provider';
import type { Db } from '../store/db.js';
import { type User, Users } from '../store/users.js';

export async function findEnabledUser(db: Db, id: string): Promise<User | undefined> {
  const user = await new Users(db).find(id);
  return user?.disabledAtMs === undefined ? user : undefined;
}

/** Who may sign in, and has not been made to sign in anew since this began. */
export async function findSignedInUser(
  db: Db,
  id: string,
  beganAtMs: number,
): Promise<User | undefined> {
  const user = await findEnabledUser(db, id);
  return user !== undefined && beganAtMs > (user.loginsEndedAtMs ?? 0) ? user : undefined;
}

export async function findAccount(db: Db, id: string): Promise<Account | undefined> {
  const user = await findEnabledUser(db, id);
  if (user === undefined) return undefined;
  const account = { accountId: user.id, claims: () => userClaims(user) };
  usersOfAccounts.set(account, user);
  return account;
}

/** The user this request is about, where the library has looked it up by `findAccount`. */
export function userOf({ oidc }: KoaContextWithOIDC): User | undefined {
  return oidc.account === undefined ? undefined : usersOfAccounts.get(oidc.account);
}

const usersOfAccounts = new WeakMap<Account, User>();

/** The library keeps back what no granted scope covers. */
export function userClaims(user: User) {
  return {
    sub: user.id,
    name: user.name,
    preferred_username: user.name,
    tenant: user.tenant,
    ...(EMAIL.test(user.name) && { email: user.name }),
  };
}

/** Where people sign in with their address, it is known. */
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,255}$/;

/** Which claims each scope opens. */
export const SCOPE_CLAIMS = {
  openid: ['sub'],
  profile: ['name', 'preferred_username', 'tenant'],
  email: ['email'],
};
