/** The query of an invite's URL. Nothing of it is refused with an answer: what is wrong becomes a close with its own reason. */
import { Secret } from '../../../base/secret.js';
import type { Exchange } from '../../http/exchange.js';

export interface InviteQuery {
  readonly token: Secret | undefined;
  /** Every one that is there. */
  readonly rooms: readonly string[];
  readonly isElevated: boolean;
}

export function readInviteQuery({ request }: Exchange): InviteQuery {
  const url = request.url ?? '';
  const at = url.indexOf('?');
  const query = new URLSearchParams(at === -1 ? '' : url.slice(at + 1));
  const tokens = query.getAll('token');
  const [elevated = ''] = query.getAll('elevated');
  return {
    // Two tokens are none that counts; one that is empty is missing.
    token:
      tokens.length === 0 ? undefined : new Secret(tokens.length === 1 ? (tokens[0] ?? '') : '-'),
    rooms: query.getAll('room').slice(0, MOST_ROOMS),
    isElevated: /^(?:true|1)$/i.test(elevated),
  };
}

/** Two are as wrong as any number. */
const MOST_ROOMS = 8;
