/** The logins of an account, as their owner sees them. */
import * as z from 'zod/mini';
import { text } from '../frame-fields.js';
import { pageOf } from './envelope.js';
import { maybe, plainId, principalId, threadId, timestamp } from './fields.js';

export const loginEntry = z.object({
  id: plainId,
  client_id: principalId,
  scopes: z.array(text(1, 128)).check(z.maxLength(64)),
  /** The login is pinned to these. */
  threads: maybe(z.array(threadId).check(z.maxLength(64))),
  /** Where it was asked for from. */
  address: maybe(text(1, 64)),
  user_agent: maybe(text(0, 256)),
  /** What the machine says it is called: nobody has checked it. */
  machine_name: maybe(text(1, 64)),
  created_at: timestamp,
  /** When it last got a token. */
  last_used_at: timestamp,
  expires_at: timestamp,
  /** Whether the caller's own token is of this login. */
  current: z.boolean(),
});

export type LoginEntry = z.output<typeof loginEntry>;

export const loginPage = pageOf(loginEntry);

export type LoginPage = z.output<typeof loginPage>;
