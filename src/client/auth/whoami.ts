/** Asks the server who it takes us for, and tells a refusal from a server that is merely away. */
import type { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import type { WhoamiAnswer } from '../../protocol/shapes/whoami.js';
import { type Access, currentAccess, refusedAccess } from './access.js';
import { parseWhoami } from './whoami-answer.js';
import type { AuthWorld } from './world.js';

export type LoginState = 'valid' | 'none' | 'expired' | 'revoked' | 'unreachable' | 'rate_limited';

export type Whoami =
  | { readonly state: 'valid'; readonly access: Access; readonly answer: WhoamiAnswer }
  | {
      readonly state: Exclude<LoginState, 'valid'>;
      /** Absent where there was no token to ask with. */
      readonly access: Access | undefined;
      readonly failure: AilsdError;
    };

/** Throws what is none of the states: wrong settings, a server that speaks another language. */
export async function askWhoami(world: AuthWorld, signal?: AbortSignal): Promise<Whoami> {
  let access: Access | undefined;
  try {
    access = await currentAccess(world, { signal });
    const first = await whoIs(world, access.token, signal);
    if (first !== undefined) return { state: 'valid', access, answer: first };
    // A stored token may have been ended while its login goes on; what a variable gives is final.
    if (access.origin.kind === 'stored') {
      access = await currentAccess(world, { signal, refused: true });
      const second = await whoIs(world, access.token, signal);
      if (second !== undefined) return { state: 'valid', access, answer: second };
    }
    throw refusedAccess(access, world.clock.now());
  } catch (error) {
    if (!(error instanceof AilsdError)) throw error;
    const state = STATES[error.code];
    // Without a token nobody was asked: the settings are wrong, and no login was refused.
    const wasAsked = access !== undefined || error.code !== 'UNAUTHENTICATED';
    if (state === undefined || !wasAsked) throw error;
    return { state, access, failure: error };
  }
}

const STATES: Readonly<Partial<Record<string, Exclude<LoginState, 'valid'>>>> = {
  NOT_LOGGED_IN: 'none',
  TOKEN_EXPIRED: 'expired',
  LOGIN_REVOKED: 'revoked',
  UNAUTHENTICATED: 'revoked',
  UNREACHABLE: 'unreachable',
  RATE_LIMITED: 'rate_limited',
};

/** `undefined` where the server refuses the token. */
export async function whoIs(
  world: AuthWorld,
  token: Secret,
  signal: AbortSignal | undefined,
): Promise<WhoamiAnswer | undefined> {
  const http = await world.http();
  const headers = { authorization: `Bearer ${token.reveal()}` };
  const url = `${world.url()}/v1/whoami`;
  const answer = await http.json({ url, headers, signal }).catch(answerInstead);
  return answer === undefined ? undefined : parseWhoami(answer.value);
}

/** By status, for what stands before a server has its own words: only a 401 speaks about the token. */
function answerInstead(error: unknown): undefined {
  const status = error instanceof AilsdError ? error.details['status'] : undefined;
  if (!(error instanceof AilsdError) || typeof status !== 'number') throw error;
  if (status === 401) return undefined;
  const { message, details } = error;
  if (status === 429) throw new AilsdError('RATE_LIMITED', message, { cause: error, details });
  if (status >= 500) throw new AilsdError('UNREACHABLE', message, { cause: error, details });
  throw error;
}

/** What people call the account of a token, where the server says it soon; whether it does decides nothing. */
export async function nameOf(
  world: AuthWorld,
  token: Secret,
  signal: AbortSignal,
): Promise<string | undefined> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(NAME_LIMIT_MS)]);
  return whoIs(world, token, limit).then(
    (answer) => answer?.name,
    () => undefined,
  );
}

const NAME_LIMIT_MS = 3_000;
