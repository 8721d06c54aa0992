/** The logins of the account in use, at its server: which there are, and ending one or all of them from here. */
import { AilsdError } from '../../protocol/errors.js';
import { parse } from '../../protocol/parse.js';
import { buildPath } from '../../protocol/routes.js';
import { type LoginEntry, loginPage } from '../../protocol/shapes/logins.js';
import type { JsonAnswer, JsonRequest } from '../http/http.js';
import { currentAccess, refusedAccess } from './access.js';
import type { AuthWorld } from './world.js';

export async function listLogins(
  world: AuthWorld,
  signal?: AbortSignal,
): Promise<readonly LoginEntry[]> {
  const { value } = await ask(world, { url: buildPath('listLogins', {}), signal });
  const parsed = parse(loginPage, value, 'PROTOCOL_MISMATCH', "the server's answer: ");
  if (!parsed.ok) throw parsed.error;
  return parsed.value.items;
}

/** NOT_FOUND where there is no such login of ours. */
export async function endOneLogin(
  world: AuthWorld,
  id: string,
  signal?: AbortSignal,
): Promise<void> {
  const url = buildPath('endLogin', { login_id: id });
  await ask(world, { method: 'DELETE', url, signal });
}

/** This one too. */
export async function endAllLogins(world: AuthWorld, signal?: AbortSignal): Promise<void> {
  await ask(world, { method: 'DELETE', url: buildPath('endLogins', {}), signal });
}

/** With the token in use; once more with a fresh one where the server refuses that and there is a way. */
async function ask(world: AuthWorld, request: JsonRequest): Promise<JsonAnswer> {
  const { signal } = request;
  const http = await world.http();
  let access = await currentAccess(world, { signal });
  const send = (): Promise<JsonAnswer | undefined> => {
    const headers = { authorization: `Bearer ${access.token.reveal()}` };
    return http
      .json({ ...request, url: `${world.url()}${request.url}`, headers })
      .catch(unlessRefused);
  };
  let answer = await send();
  if (answer === undefined && access.origin.kind === 'stored') {
    access = await currentAccess(world, { signal, refused: true });
    answer = await send();
  }
  if (answer === undefined) throw refusedAccess(access, world.clock.now());
  return answer;
}

function unlessRefused(error: unknown): undefined {
  if (!(error instanceof AilsdError)) throw error;
  const { status } = error.details;
  if (status === 401) return undefined;
  // A server of another make, or of before.
  if (status === 404 && error.code !== 'NOT_FOUND') throw noLogins(error);
  const isOurWord = error.details['field'] === 'login_id';
  if (error.code === 'NOT_FOUND' && !isOurWord) throw noLogins(error);
  throw error;
}

function noLogins(cause: AilsdError): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', 'this server does not tell about logins', { cause });
}
