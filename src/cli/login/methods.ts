/** The ways to log in: each gets tokens and keeps them. The store is decided and announced before anything is asked for. */
import { hostname } from 'node:os';
import type { Secret } from '../../base/secret.js';
import {
  awaitApproval,
  requestDeviceCode,
  type WaitingNews,
} from '../../client/auth/device-login.js';
import { connectIssuer, type Issuer } from '../../client/auth/issuer.js';
import { keepLogin } from '../../client/auth/keep-login.js';
import { type IndirectSource, tokensFromSource } from '../../client/auth/source-access.js';
import { type Tokens, toCredential } from '../../client/auth/tokens.js';
import { nameOf, whoIs } from '../../client/auth/whoami.js';
import type { AuthWorld } from '../../client/auth/world.js';
import type { ChosenStore } from '../../client/credentials/choose-store.js';
import type { Credential } from '../../client/credentials/credential.js';
import type { CredentialStore } from '../../client/credentials/credential-store.js';
import { AilsdError } from '../../protocol/errors.js';
import { CLI_CLIENT_ID } from '../../protocol/shapes/issuer.js';
import type { Context } from '../context.js';
import { whileWaiting } from './approval.js';
import { whyNoBrowser } from './browser.js';
import { printGranted } from './granted.js';
import { showAddress } from './show-address.js';

export interface LoginOptions {
  readonly scopes: readonly string[];
  readonly mayOpenBrowser: boolean;
  readonly wantsQr: boolean;
}

export function deviceLogin(
  context: Context,
  world: AuthWorld,
  options: LoginOptions,
): Promise<void> {
  return login(context, world, options, CLI_CLIENT_ID, async () => {
    const { signal } = context;
    const issuer = await connect(world, signal);
    const code = await requestDeviceCode(issuer, options.scopes, {
      signal,
      machineName: hostname(),
    });
    const { verificationUri: url, verificationUriComplete: completeUrl, userCode } = code;
    const { expiresInSeconds } = code;
    const address = { url, completeUrl, code: userCode, expiresInSeconds };
    await showAddress(context, address, options.wantsQr);
    const { mayOpenBrowser } = options;
    const text = `waiting for approval, at most ${durationText(expiresInSeconds)}`;
    const approval = { url: completeUrl ?? url, text, mayOpenBrowser };
    return whileWaiting(context, approval, (waiting) => {
      const news = (one: WaitingNews): void => waiting.say(newsText(one));
      return awaitApproval(issuer, code, options.scopes, { signal, news });
    });
  });
}

export function webLogin(context: Context, world: AuthWorld, options: LoginOptions): Promise<void> {
  return login(context, world, options, CLI_CLIENT_ID, async () => {
    const { signal, output } = context;
    const [issuer, { startWebLogin }] = await Promise.all([
      connect(world, signal),
      import('../../client/auth/web-login.js'),
    ]);
    if (whyNoBrowser(context, true) === 'this is an ssh session') {
      output.notice('the browser must run on this machine; without --web it can be anywhere');
    }
    await using web = await startWebLogin(issuer, options.scopes);
    const { url } = web;
    await showAddress(context, { url }, options.wantsQr);
    const approval = {
      url,
      text: 'waiting for the browser',
      mayOpenBrowser: options.mayOpenBrowser,
    };
    return await whileWaiting(context, approval, (waiting) =>
      web.finished({
        signal,
        wrongCode: () =>
          waiting.say('a code came back that the server did not give to this login; still waiting'),
      }),
    );
  });
}

/** A token that somebody has already, once the server has said whose it is. */
export async function tokenLogin(context: Context, world: AuthWorld, token: Secret): Promise<void> {
  using chosen = await openStore(context, world);
  const { signal } = context;
  const answer = await whoIs(world, token, signal);
  if (answer === undefined) {
    throw new AilsdError('LOGIN_FAILED', 'the server does not accept that token', {
      hint: 'check that it is an access token of this server and has not expired',
    });
  }
  const now = world.clock.now();
  const credential: Credential = {
    issuer: world.url(),
    clientId: answer.client_id,
    account: answer.sub,
    ...(answer.name && { name: answer.name }),
    tenant: answer.tenant,
    scopes: answer.scopes,
    threads: answer.threads,
    accessToken: token,
    accessExpiresAtMs: Date.parse(answer.expires_at),
    obtainedAtMs: now,
  };
  await keep(context, world, chosen.store, credential, []);
}

/** A service's secret or a CI job's identity, once, for the commands that follow without it. */
export async function sourceLogin(
  context: Context,
  world: AuthWorld,
  source: IndirectSource,
  scopes: readonly string[],
): Promise<void> {
  const clientId = source.kind === 'client-secret' ? source.clientId : CLI_CLIENT_ID;
  await login(context, world, { scopes }, clientId, async () => {
    const { tokens } = await tokensFromSource(world, source, scopes, context.signal);
    return tokens;
  });
}

async function login(
  context: Context,
  world: AuthWorld,
  { scopes }: Pick<LoginOptions, 'scopes'>,
  clientId: string,
  getTokens: () => Promise<Tokens>,
): Promise<void> {
  const url = world.url();
  using chosen = await openStore(context, world);
  const tokens = await getTokens();
  const name = await nameOf(world, tokens.accessToken, context.signal);
  const credential = { ...toCredential(tokens, url, clientId), ...(name && { name }) };
  await keep(context, world, chosen.store, credential, scopes);
}

async function openStore(context: Context, world: AuthWorld): Promise<ChosenStore> {
  const chosen = await world.openStore('login');
  if (chosen.announcement !== undefined) context.output.notice(chosen.announcement);
  return chosen;
}

async function keep(
  context: Context,
  world: AuthWorld,
  store: CredentialStore,
  credential: Credential,
  asked: readonly string[],
): Promise<void> {
  // Whoever pressed Ctrl-C at the last moment does not want to be logged in.
  context.signal.throwIfAborted();
  const before = await store.current(credential.issuer).catch(() => undefined);
  await keepLogin(world, store, credential, context.signal);
  if (before !== undefined && before.account !== credential.account) {
    context.output.notice(`this replaces ${before.name ?? before.account} as the account in use`);
  }
  printGranted(context, { credential, store, asked });
}

async function connect(world: AuthWorld, signal: AbortSignal): Promise<Issuer> {
  const http = await world.http();
  const { clock } = world;
  return connectIssuer({ url: world.url(), clientId: CLI_CLIENT_ID, http, clock, signal });
}

function newsText(news: WaitingNews): string {
  if (news.kind === 'slowed') {
    const seconds = Math.round(news.intervalMs / 1000);
    return `the server asked to slow down: asking every ${seconds} s`;
  }
  const seconds = Math.round(news.nextInMs / 1000);
  return `${news.failure.message}; trying again in ${seconds} s`;
}

function durationText(seconds: number): string {
  return seconds < 120 ? `${Math.round(seconds)} seconds` : `${Math.round(seconds / 60)} minutes`;
}
