/** What a sandbox asks the broker about an opaque token, naming it by its hash. */
import * as z from 'zod/mini';
import { sandboxClaimFields } from '../claims.js';

/** Unknown, expired, revoked and another sandbox's are all the same: not active. */
export const opaqueTokenAnswer = z.discriminatedUnion('active', [
  z.extend(sandboxClaimFields, { active: z.literal(true) }),
  z.object({ active: z.literal(false) }),
]);

export type OpaqueTokenAnswer = z.output<typeof opaqueTokenAnswer>;
