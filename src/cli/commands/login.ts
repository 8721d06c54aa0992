/** `ailsd login`: gets a login by whichever way was asked for, and says what it can and cannot do. */
import { InvalidArgumentError, Option } from 'commander';
import { type CredentialSource, findCredentialSource } from '../../client/credentials/headless.js';
import { AilsdError } from '../../protocol/errors.js';
import { isScope, LOGIN_SCOPES, SCOPES } from '../../protocol/scopes.js';
import { Command } from '../command.js';
import { isOn } from '../config.js';
import type { Context } from '../context.js';
import { createAuthWorld, serverUrl } from '../login/auth-world.js';
import { nearest } from '../nearest.js';

interface Options {
  readonly device?: boolean;
  readonly web?: boolean;
  readonly withToken?: boolean;
  readonly clientCredentials?: boolean;
  readonly oidc?: boolean;
  readonly scope?: readonly string[];
  readonly browser: boolean;
  readonly qr?: boolean;
}

const METHODS = ['device', 'web', 'withToken', 'clientCredentials', 'oidc'] as const;
type Method = (typeof METHODS)[number];

export function loginCommand(context: Context): Command {
  const method = (flag: string, name: Method, summary: string): Option =>
    new Option(flag, summary).conflicts(METHODS.filter((other) => other !== name));
  const command = new Command('login')
    .description('log in to the server')
    .addOption(method('--device', 'device', 'approve in any browser, on any device (the default)'))
    .addOption(method('--web', 'web', 'approve in a browser on this machine'))
    .addOption(method('--with-token', 'withToken', 'read an access token from standard input'))
    .addOption(
      method('--client-credentials', 'clientCredentials', 'as a service, by its id and secret'),
    )
    .addOption(method('--oidc', 'oidc', 'as a CI job, by its identity token'))
    .option('--scope <scope>', 'ask for this scope; may be repeated', collectScopes)
    .option('--no-browser', 'never open a browser')
    .option('--qr', 'show a QR code whatever the size of the terminal')
    .example('ailsd login', 'see an address and a code; approve in any browser')
    .example('ailsd login --scope read:sandbox', 'a login that can only look')
    .example(
      'ailsd login --profile work --url https://ailsd.example.com',
      'and keep both as a profile',
    )
    .example('ailsd login --with-token < token.txt', 'with a token from elsewhere');
  return command.action((options: Options) => runLogin(context, options, methodOf(command)));
}

async function runLogin(context: Context, options: Options, method: Method): Promise<void> {
  const makeProfile = context.settings.newProfile();
  await logIn(context, options, method);
  if (makeProfile === undefined) return;
  context.output.notice(`profile ${await makeProfile()} now stands for ${serverUrl(context)}`);
}

async function logIn(context: Context, options: Options, method: Method): Promise<void> {
  using world = createAuthWorld(context);
  const scopes = options.scope ?? [];
  if (method === 'withToken') {
    const { readTokenFromStdin } = await import('../login/stdin-token.js');
    const token = readTokenFromStdin(context);
    const { tokenLogin } = await import('../login/methods.js');
    await tokenLogin(context, world, token);
    return noteVariable(context, world.variable);
  }
  if (method === 'clientCredentials' || method === 'oidc') {
    const source = sourceOf(context, method);
    const { sourceLogin } = await import('../login/methods.js');
    return await sourceLogin(context, world, source, scopes);
  }
  const source = findCredentialSource(world.variable);
  if (source !== undefined) return sayVariable(context, source);
  const { deviceLogin, webLogin } = await import('../login/methods.js');
  const login = method === 'web' ? webLogin : deviceLogin;
  await login(context, world, {
    scopes: scopes.length === 0 ? LOGIN_SCOPES : scopes,
    mayOpenBrowser: options.browser,
    wantsQr: options.qr === true,
  });
}

/** AILSD_OIDC says where a CI job's identity comes from; by itself it does not make `login` exchange it. */
function methodOf(command: Command): Method {
  const given = (name: Method): boolean => {
    const source = command.getOptionValueSource(name);
    return name === 'oidc'
      ? source === 'cli'
      : source !== undefined && command.getOptionValue(name) === true;
  };
  return METHODS.find(given) ?? 'device';
}

/** A variable is a complete login: there is nothing to do, and that is no error. */
function sayVariable({ output }: Context, { variable }: CredentialSource): void {
  output.notice(`${variable} is set and is what every command uses; unset it to log in`);
  output.result({ server: null, account: null, source: variable, stored: null }, () => '');
}

function noteVariable({ output }: Context, variables: (name: string) => string | undefined): void {
  const source = findCredentialSource(variables);
  if (source !== undefined) output.notice(`${source.variable} is set and wins over this login`);
}

function sourceOf(
  { environment }: Context,
  method: 'clientCredentials' | 'oidc',
): Exclude<CredentialSource, { kind: 'token' }> {
  const names = method === 'oidc' ? OIDC_VARIABLES : CLIENT_VARIABLES;
  const isGithub = environment.variable('ACTIONS_ID_TOKEN_REQUEST_URL') !== undefined;
  const source = findCredentialSource((name) => {
    // The way was chosen: what other variables hold does not matter.
    if (!names.includes(name)) return undefined;
    const value = environment.exactVariable(name);
    if (name !== 'AILSD_OIDC' || (value !== undefined && value !== '1' && isOn(value)))
      return value;
    return isGithub ? 'github' : undefined;
  });
  if (source !== undefined && source.kind !== 'token') return source;
  throw new AilsdError(
    'USAGE',
    method === 'oidc'
      ? '--oidc needs a CI job that gives out an identity, or AILSD_IDENTITY_TOKEN_FILE'
      : '--client-credentials needs AILSD_CLIENT_ID and AILSD_CLIENT_SECRET or AILSD_CLIENT_SECRET_FILE',
    { hint: 'see `ailsd help environment`' },
  );
}

const CLIENT_VARIABLES = ['AILSD_CLIENT_ID', 'AILSD_CLIENT_SECRET', 'AILSD_CLIENT_SECRET_FILE'];
const OIDC_VARIABLES = [
  'AILSD_IDENTITY_TOKEN',
  'AILSD_IDENTITY_TOKEN_FILE',
  'AILSD_OIDC',
  'ACTIONS_ID_TOKEN_REQUEST_URL',
  'ACTIONS_ID_TOKEN_REQUEST_TOKEN',
];

/** What an issuer may know besides ours. */
const STANDARD_SCOPES = ['openid', 'offline_access', 'profile', 'email'];

function collectScopes(value: string, before: readonly string[] = []): readonly string[] {
  const words = value.split(/[\s,]+/).filter((word) => word !== '');
  const known = [...Object.keys(SCOPES), ...STANDARD_SCOPES];
  for (const word of words) {
    if (isScope(word) || STANDARD_SCOPES.includes(word)) continue;
    const near = nearest(word, known) ?? known.find((one) => one.startsWith(`${word}:`));
    const hint = near === undefined ? `Scopes are ${known.join(', ')}.` : `(Did you mean ${near}?)`;
    throw new InvalidArgumentError(`There is no such scope.\n${hint}`);
  }
  return [...new Set([...before, ...words])];
}
