/** `ailsd logout`: ends the login at the server, as far as that can be reached, and forgets it here. */
import { Option } from 'commander';
import type { EndedLogin } from '../../client/auth/logout.js';
import type { AuthWorld } from '../../client/auth/world.js';
import { findCredentialSource } from '../../client/credentials/headless.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { createAuthWorld } from '../login/auth-world.js';

export function logoutCommand(context: Context): Command {
  return new Command('logout')
    .description('end the login and forget it')
    .addOption(only('--all', 'every login that is stored here, at every server'))
    .addOption(only('--login <id>', 'another login of yours, by its id: see `whoami --logins`'))
    .addOption(only('--everywhere', 'all your logins at the server, in terminals and browsers'))
    .example('ailsd logout', 'the login at the server in use')
    .example('ailsd logout --all', 'before giving a machine away')
    .example('ailsd logout --everywhere', 'when a machine was lost')
    .action((options: Options) => runLogout(context, options));
}

interface Options {
  readonly all?: boolean;
  readonly login?: string;
  readonly everywhere?: boolean;
}

const NAMES = ['all', 'login', 'everywhere'];

/** One of them at a time. */
function only(flags: string, summary: string): Option {
  const option = new Option(flags, summary);
  return option.conflicts(NAMES.filter((name) => name !== option.attributeName()));
}

async function runLogout(context: Context, options: Options): Promise<void> {
  using world = createAuthWorld(context);
  if (options.login !== undefined) {
    const { endLoginById } = await import('../login/end-own-logins.js');
    if ((await endLoginById(context, world, options.login)) === 'elsewhere') return;
  }
  if (options.everywhere === true) {
    const { endAllLogins } = await import('../../client/auth/own-logins.js');
    await endAllLogins(world, context.signal);
  }
  await endHere(context, world, options.all === true);
}

async function endHere(context: Context, world: AuthWorld, all: boolean): Promise<void> {
  const { output, signal } = context;
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
