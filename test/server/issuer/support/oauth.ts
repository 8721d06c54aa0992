/** The issuer's endpoints by bare HTTP, and the device login as a terminal does it. */
import { CLI_CLIENT_ID, GRANT_TYPES } from '../../../../src/protocol/shapes/issuer.js';
import { type Choice, Person } from './person.js';
import type { World } from './world.js';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what a foreign client would see, looked at field by field.
  readonly body: any;
}

export async function post(
  url: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? JSON.parse(text) : text,
  };
}

export async function get(url: string): Promise<Answer> {
  const response = await fetch(url);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

export const LOGIN_SCOPE =
  'openid email profile read:sandbox write:sandbox exec:sandbox attach:sandbox';

export async function beginLogin(
  url: string,
  scope = LOGIN_SCOPE,
  headers = {},
  more: Readonly<Record<string, string>> = {},
): Promise<Answer['body']> {
  const fields = { client_id: CLI_CLIENT_ID, scope, ...more };
  const answer = await post(`${url}/device/code`, fields, headers);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

export function poll(
  url: string,
  deviceCode: string,
  clientId: string = CLI_CLIENT_ID,
): Promise<Answer> {
  return post(`${url}/token`, {
    grant_type: GRANT_TYPES.deviceCode,
    client_id: clientId,
    device_code: deviceCode,
  });
}

export function refresh(url: string, refreshToken: string, headers = {}): Promise<Answer> {
  return post(
    `${url}/token`,
    { grant_type: 'refresh_token', client_id: CLI_CLIENT_ID, refresh_token: refreshToken },
    headers,
  );
}

export function exchange(
  url: string,
  client: { readonly clientId: string; readonly secret?: string },
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  return post(`${url}/token`, {
    grant_type: GRANT_TYPES.tokenExchange,
    client_id: client.clientId,
    ...(client.secret !== undefined && { client_secret: client.secret }),
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    ...fields,
  });
}

/** A whole login, approved by ada. */
export async function login(
  { url }: World,
  options: { readonly scope?: string; readonly person?: Person; readonly choice?: Choice } = {},
): Promise<Answer['body']> {
  const begun = await beginLogin(url, options.scope);
  const person = options.person ?? (await signedIn(url));
  const decided = await person.decide(begun.user_code, 'approve', options.choice);
  if (decided.status !== 200) throw new Error(`not approved: ${decided.status} ${decided.text}`);
  const answer = await poll(url, begun.device_code);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

export async function signedIn(url: string, name = 'ada', headers = {}): Promise<Person> {
  const person = new Person(url, headers);
  const seen = await person.signIn(name);
  if (seen.status !== 303) throw new Error(`not signed in: ${seen.status} ${seen.text}`);
  return person;
}

// biome-ignore lint/suspicious/noExplicitAny: a token's claims, looked at field by field.
export function claimsOf(token: string, part = 1): any {
  return JSON.parse(Buffer.from(token.split('.')[part] ?? '', 'base64url').toString());
}

export function introspect(
  url: string,
  token: string,
  client: { readonly clientId: string; readonly secret?: string } = { clientId: CLI_CLIENT_ID },
): Promise<Answer> {
  return post(`${url}/introspect`, {
    token,
    client_id: client.clientId,
    ...(client.secret !== undefined && { client_secret: client.secret }),
  });
}
