/** `ailsd whoami`: asks the server who we are to it, and says where the login comes from and whether it works. */
import type { Whoami } from '../../client/auth/whoami.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { createAuthWorld } from '../login/auth-world.js';

export function whoamiCommand(context: Context): Command {
  return new Command('whoami')
    .description('print who you are to the server, and whether the login works')
    .option('--logins', 'list your logins, wherever they were made')
    .example('ailsd whoami', 'account, scopes, and where the login is stored')
    .example('ailsd whoami --json', 'for a script: see state')
    .example('ailsd whoami --logins', 'what to give to `ailsd logout --login`')
    .action((options: { readonly logins?: boolean }) =>
      runWhoami(context, options.logins === true),
    );
}

async function runWhoami(context: Context, wantsLogins: boolean): Promise<void> {
  using world = createAuthWorld(context);
  if (wantsLogins) {
    const { printLogins } = await import('../login/own-logins.js');
    return await printLogins(context, world);
  }
  const { askWhoami } = await import('../../client/auth/whoami.js');
  const found = await askWhoami(world, context.signal);
  const document = toDocument(found, world.url());
  // Of nobody there is nothing to tell a person but what the error says.
  const text = found.state === 'none' ? undefined : await textFor(context);
  context.output.result(document, () => text?.(document, context.style) ?? '');
  // The document says what is known; the error says what to do, and is what the process ends with.
  if (found.state !== 'valid') throw found.failure;
}

/** Scripts, which run this in loops, do not wait for what only people read. */
async function textFor({ output }: Context) {
  if (output.mode !== 'text') return undefined;
  return (await import('../login/whoami-text.js')).whoamiText;
}

export type WhoamiDocument = ReturnType<typeof toDocument>;

function toDocument(found: Whoami, server: string) {
  const { state, access } = found;
  const answer = found.state === 'valid' ? found.answer : undefined;
  const origin = access?.origin;
  const stored = origin?.kind === 'stored' ? origin : undefined;
  return {
    state,
    server,
    account: answer?.sub ?? stored?.account ?? null,
    name: answer?.name ?? stored?.name ?? null,
    principal: answer?.principal ?? null,
    tenant: answer?.tenant ?? stored?.tenant ?? null,
    client_id: answer?.client_id ?? null,
    scopes: answer?.scopes ?? access?.scopes ?? [],
    threads: answer?.threads ?? null,
    act: answer?.act ?? null,
    expires_at: answer?.expires_at ?? timestamp(access?.expiresAtMs),
    login_expires_at: timestamp(stored?.loginExpiresAtMs),
    source: origin?.kind === 'variable' ? origin.variable : null,
    stored: stored === undefined ? null : { kind: stored.store, place: stored.place },
  };
}

function timestamp(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
