/** Who the bearer of an access token is to the broker. */
import * as z from 'zod/mini';
import { text } from '../frame-fields.js';
import { label, maybe, name, principalId, threadId, timestamp } from './fields.js';

/** Who acts for the subject, as in the token; how deep it nests was decided there. */
const actor = z.looseObject({ sub: principalId, client_id: maybe(principalId) });

export const whoamiAnswer = z.object({
  sub: principalId,
  /** How people know the account; for a service, what its client is called. */
  name: maybe(label),
  principal: z.enum(['user', 'service', 'agent']),
  tenant: name,
  client_id: principalId,
  /** A scope this side does not know is kept: a newer server may have more. */
  scopes: z.array(text(1, 128)).check(z.maxLength(64)),
  /** Of the access token that was shown. */
  expires_at: timestamp,
  act: maybe(actor),
  /** The login is pinned to these. */
  threads: maybe(z.array(threadId).check(z.maxLength(64))),
});

export type WhoamiAnswer = z.output<typeof whoamiAnswer>;
