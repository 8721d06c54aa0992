/** Local accounts: add, list, change password and scopes, end the logins, shut out and let in again, remove. */
import { randomBytes } from 'node:crypto';
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { type User, Users } from '../store/users.js';
import { hashPassword } from '../tokens/password.js';
import type { Inputs } from './config.js';
import { freshId } from './data-folder.js';
import { audited, inPlace, LIST_MAX, timestamp, type World } from './place.js';

export async function addUser(input: Inputs['user-add'], world: World): Promise<object> {
  const { dir, tenant, name, scopes, upstream } = input;
  const isVouchedFor = upstream !== undefined && input.password === undefined;
  const password = isVouchedFor ? undefined : given(input.password);
  const id = freshId('usr');
  return inPlace(dir, world, async ({ db }) => {
    const passwordHash = password && (await hashPassword(password.secret));
    await audited(db, async (tx) => {
      const added = await new Users(tx).add({ id, tenant, name, passwordHash, upstream, scopes });
      if (added === 'taken') {
        throw new AilsdError(
          'ALREADY_EXISTS',
          `there is a user ${name} in tenant ${tenant}, or of that login`,
          {
            details: { field: 'name' },
            hint: 'choose another name, or set a password with `ailsd server user passwd`',
          },
        );
      }
      const record = { event: 'user_added', tenant, subject: id, details: { name, scopes } };
      return { result: undefined, record };
    });
    return { id, name, tenant, scopes, ...password?.shown };
  });
}

export async function setPassword(input: Inputs['user-passwd'], world: World): Promise<object> {
  const password = given(input.password);
  return inPlace(input.dir, world, async ({ db }) => {
    const hash = await hashPassword(password.secret);
    return audited(db, async (tx) => {
      const users = new Users(tx);
      const { id, tenant, name } = await find(users, input);
      await users.setPasswordHash(id, hash);
      const record = { event: 'user_password_set', tenant, subject: id };
      return { result: { id, name, tenant, ...password.shown }, record };
    });
  });
}

export async function endLogins(input: Inputs['user-logout'], world: World): Promise<object> {
  return inPlace(input.dir, world, ({ db }) =>
    audited(db, async (tx) => {
      const users = new Users(tx);
      const user = await find(users, input);
      await users.endLogins(user.id);
      const record = { event: 'user_logins_ended', tenant: user.tenant, subject: user.id };
      return { result: toWire(user), record };
    }),
  );
}

export function disableUser(input: Inputs['user-disable'], world: World): Promise<object> {
  return setDisabled(input, world, true);
}

export function enableUser(input: Inputs['user-enable'], world: World): Promise<object> {
  return setDisabled(input, world, false);
}

export async function removeUser(input: Inputs['user-rm'], world: World): Promise<object> {
  return inPlace(input.dir, world, ({ db }) =>
    audited(db, async (tx) => {
      const users = new Users(tx);
      const user = await find(users, input);
      await users.remove(user.id);
      const { id, tenant, name } = user;
      const record = { event: 'user_removed', tenant, subject: id, details: { name } };
      return { result: toWire(user), record };
    }),
  );
}

/** What a login holds beyond these is gone with its next token. */
export async function setScopes(input: Inputs['user-scopes'], world: World): Promise<object> {
  return inPlace(input.dir, world, ({ db }) =>
    audited(db, async (tx) => {
      const users = new Users(tx);
      const { id, tenant, scopes: before } = await find(users, input);
      await users.setScopes(id, input.scopes);
      const details = { before, scopes: input.scopes };
      const record = { event: 'user_scopes_set', tenant, subject: id, details };
      return { result: toWire(await find(users, input)), record };
    }),
  );
}

export async function listUsers(input: Inputs['user-list'], world: World): Promise<object> {
  return inPlace(input.dir, world, async ({ db }) => {
    const users = await new Users(db).list(input.tenant, LIST_MAX);
    return { items: users.map(toWire), next_cursor: null };
  });
}

async function setDisabled(
  input: Inputs['user-disable'],
  world: World,
  isDisabled: boolean,
): Promise<object> {
  return inPlace(input.dir, world, ({ db }) =>
    audited(db, async (tx) => {
      const users = new Users(tx);
      const { id, tenant } = await find(users, input);
      await users.setDisabled(id, isDisabled);
      const event = isDisabled ? 'user_disabled' : 'user_enabled';
      const record = { event, tenant, subject: id };
      return { result: toWire(await find(users, input)), record };
    }),
  );
}

async function find(
  users: Users,
  { tenant, name }: { readonly tenant: string; readonly name: string },
): Promise<User> {
  const user = await users.findByName(tenant, name);
  if (user !== undefined) return user;
  throw new AilsdError('NOT_FOUND', `there is no user ${name} in tenant ${tenant}`, {
    details: { field: 'name' },
    hint: 'see `ailsd server user list`',
  });
}

/** 20 characters, 119 bits: long enough for a password nobody has to remember. */
function given(password: string | undefined): { readonly secret: Secret; readonly shown: object } {
  if (password !== undefined) return { secret: new Secret(password), shown: {} };
  const made = randomBytes(15).toString('base64url');
  return { secret: new Secret(made), shown: { password: made } };
}

function toWire(user: User): object {
  return {
    id: user.id,
    name: user.name,
    tenant: user.tenant,
    scopes: user.scopes,
    upstream_issuer: user.upstream?.issuer ?? null,
    has_password: user.passwordHash !== undefined,
    created_at: timestamp(user.createdAtMs),
    disabled_at: user.disabledAtMs === undefined ? null : timestamp(user.disabledAtMs),
  };
}
