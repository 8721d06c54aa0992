/** `whoami --logins`: the logins of the account, wherever they were made, and which of them this one is. */
import { listLogins } from '../../client/auth/own-logins.js';
import type { AuthWorld } from '../../client/auth/world.js';
import type { LoginEntry } from '../../protocol/shapes/logins.js';
import { columns } from '../columns.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { timeText } from './time-text.js';

export async function printLogins(context: Context, world: AuthWorld): Promise<void> {
  const { output, style, signal } = context;
  const logins = await listLogins(world, signal);
  output.list(logins, () => {
    const head = ['ID', 'CLIENT', 'FROM', 'CREATED', 'LAST USED', 'EXPIRES'];
    const rows = logins.map((login) => [
      login.current ? style.good('*') : ' ',
      escapeText(login.id),
      escapeText(login.client_id),
      escapeText(placeOf(login)),
      ...[login.created_at, login.last_used_at, login.expires_at].map((at) =>
        timeText(Date.parse(at)),
      ),
    ]);
    return columns([[' ', ...head].map((word) => style.dim(word)), ...rows]);
  });
  output.notice('* is the login in use here; end another with `ailsd logout --login ID`');
}

function placeOf({ machine_name: machine, address }: LoginEntry): string {
  if (machine === undefined) return address ?? 'unknown';
  return address === undefined ? machine : `${machine} (${address})`;
}
