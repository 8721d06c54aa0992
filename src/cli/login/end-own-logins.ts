/** `logout --login ID`: ends a login that was made elsewhere; the one in use here is left to who forgets it as well. */
import { endOneLogin, listLogins } from '../../client/auth/own-logins.js';
import type { AuthWorld } from '../../client/auth/world.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';

export async function endLoginById(
  { output, signal }: Context,
  world: AuthWorld,
  id: string,
): Promise<'elsewhere' | 'here'> {
  const login = (await listLogins(world, signal)).find((one) => one.id === id);
  if (login === undefined) {
    throw new AilsdError('NOT_FOUND', `there is no login ${id}`, {
      hint: 'see `ailsd whoami --logins`',
    });
  }
  if (login.current) return 'here';
  await endOneLogin(world, id, signal);
  output.result({ removed: [], ended: [id] }, () => escapeText(`Ended the login ${id}`));
  return 'elsewhere';
}
