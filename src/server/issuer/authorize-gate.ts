/** Before the library sees `/authorize`: each request that it takes is kept for minutes, so they are few and small. */
import { errorPage, tooManyPage } from '../web/outcome-page.js';
import type { GuessLimits } from './guess-limits.js';
import type { Asking } from './pages.js';
import { ROUTES } from './provider-config.js';
import { readForm } from './read-form.js';
import { go, type Reply, show } from './reply.js';

/** Of one parameter, and of all together. */
export const PARAMETER_MAX_BYTES = 2_048;
export const PARAMETERS_MAX_BYTES = 8_192;

/** `undefined`: the library may answer. */
export async function gateAuthorize(
  { request, url, address }: Omit<Asking, 'provider'>,
  limits: GuessLimits,
): Promise<Reply | undefined> {
  if (request.method === 'POST') {
    // The library would want cookies that other sites may send; asked for by GET it does not.
    const form = await readForm(request);
    if (form === undefined || !isSmall(form)) return TOO_LONG;
    return go(`${ROUTES.authorization}?${form}`);
  }
  if (!isSmall(url.searchParams)) return TOO_LONG;
  const login = await limits.browserLogin(address);
  if (login.kind === 'allowed') return undefined;
  return show(tooManyPage(login.retryAfterSeconds, 'logins'));
}

function isSmall(parameters: URLSearchParams): boolean {
  if (Buffer.byteLength(parameters.toString()) > PARAMETERS_MAX_BYTES) return false;
  return [...parameters].every((pair) =>
    pair.every((text) => Buffer.byteLength(text) <= PARAMETER_MAX_BYTES),
  );
}

const TOO_LONG = show(errorPage(400, 'The request is too long, or not one that this page takes.'));
