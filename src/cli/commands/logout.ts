/** `ailsd logout`: ends the login at the server, as far as that can be reached, and forgets it here. */
import type { EndedLogin } from '../../client/auth/logout.js';
import { findCredentialSource } from '../../client/credentials/headless.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { createAuthWorld } from '../login/auth-world.js';

export function logoutCommand(context: Context): Command {
  return new Command('logout')
    .description('end the login and forget it')
    .option('--all', 'every login that is stored, at every server')
    .example('ailsd logout', 'the login at the server in use')
    .example('ailsd logout --all', 'before giving a machine away')
    .action((options: { readonly all?: boolean }) => runLogout(context, options.all === true));
}

async function runLogout(context: Context, all: boolean): Promise<void> {
  const { output, signal } = context;
  using world = createAuthWorld(context);
  using chosen = await world.openStore('use');
  const { store } = chosen;
  const current = all ? undefined : await store.current(world.url());
  const keys = all ? await store.list() : current === undefined ? [] : [current];
  const ended: EndedLogin[] = [];
  for (const key of keys) {
    const { endLogin } = await import('../../client/auth/logout.js');
    const login = await endLogin(world, store, key, signal);
    ended.push(login);
    if (login.notRevoked !== undefined) {
      output.notice(
        `${key.issuer} was not told (${login.notRevoked.message}); there the login lasts until it expires`,
      );
    }
  }
  const source = findCredentialSource(world.variable);
  if (source !== undefined) output.notice(`${source.variable} is still set and is used`);
  const document = {
    removed: ended.map(({ key, notRevoked }) => ({
      server: key.issuer,
      account: key.account,
      client_id: key.clientId,
      revoked: notRevoked === undefined,
    })),
  };
  output.result(document, () =>
    ended.length === 0
      ? 'Not logged in'
      : ended
          .map(({ key }) => escapeText(`Logged out of ${key.issuer} (${key.account})`))
          .join('\n'),
  );
}
