/** Takes invites at the gateway: each is decided and marked used in one step, whoever else shows it at the same time. */
import type { Secret } from '../../../base/secret.js';
import type { ErrorCode } from '../../../protocol/errors.js';
import { isThreadId } from '../../../protocol/ids.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { type InviteOrigin, Invites } from '../../store/invites.js';
import { type InviteClaims, type InviteEndpoint, verifyInvite } from '../../tokens/invite.js';

/** What somebody came to the gateway with. */
export interface ShownInvite<E extends InviteEndpoint> {
  readonly endpoint: E;
  readonly token: Secret | undefined;
  /** Every `room` of the query. */
  readonly rooms?: readonly string[] | undefined;
  readonly isElevated?: boolean | undefined;
  readonly requestId: string;
}

export type TakenInvite<E extends InviteEndpoint> =
  | {
      readonly kind: 'taken';
      readonly claims: InviteClaims[E];
      /** Of `/computer`: where the shell is to be. */
      readonly room: string | undefined;
      readonly isElevated: boolean;
      readonly origin: InviteOrigin | undefined;
    }
  /** The close that belongs to the code is in the table of errors. */
  | { readonly kind: 'refused'; readonly code: InviteRefusal };

export type InviteRefusal = Extract<
  ErrorCode,
  'TOKEN_MISSING' | 'TOKEN_EXPIRED' | 'UNAUTHENTICATED' | 'ROOM_FORBIDDEN'
>;

/** Decides and marks it used in one step, recorded with the identity the invite names. */
export async function takeInvite<E extends InviteEndpoint>(
  { db, secret }: { readonly db: Db; readonly secret: Secret },
  shown: ShownInvite<E>,
): Promise<TakenInvite<E>> {
  const { endpoint, token, requestId } = shown;
  if (token === undefined || token.reveal() === '') return refused('TOKEN_MISSING');
  const nowMs = await db.now();
  const verdict = verifyInvite(token, secret, { endpoint, nowMs });
  if (verdict.kind === 'expired') return refused('TOKEN_EXPIRED');
  if (verdict.kind === 'invalid') return refused('UNAUTHENTICATED');
  const { claims, hash } = verdict;
  const record = { subject: claims.sub, requestId, jti: claims.jti };
  const claimed = typeof claims.room === 'string' ? claims.room : undefined;
  const room = claimed === undefined ? undefined : roomOf(claimed, shown.rooms);
  if (claimed !== undefined && room === undefined) {
    const details = { endpoint, room: claimed, asked: (shown.rooms ?? []).join(' ').slice(0, 256) };
    await new Audit(db).record({ event: 'invite.refused', ...record, details });
    return refused('ROOM_FORBIDDEN');
  }
  const used = await db.transaction(async (tx) => {
    const outcome = await new Invites(tx).use(hash, claims.exp * 1000);
    if (outcome.kind === 'spent') return outcome;
    const { origin } = outcome;
    await new Audit(tx).record({
      event: 'invite.used',
      ...record,
      tenant: origin?.tenant,
      actor: origin?.actor,
      clientId: origin?.clientId,
      sessionId: origin?.sessionId,
      threadId: room,
      details: { endpoint, ...(origin && { issued_to: origin.issuedTo }) },
    });
    return outcome;
  });
  if (used.kind === 'spent') return refused('UNAUTHENTICATED');
  const isElevated = claims.elevated === true && shown.isElevated === true;
  return { kind: 'taken', claims, room, isElevated, origin: used.origin };
}

/** The one room that was asked for, if the claim allows it. `*` is for claims: nobody asks for it. */
function roomOf(claimed: string, asked: readonly string[] | undefined): string | undefined {
  const [room] = asked ?? [];
  if (room === undefined || asked?.length !== 1 || !isThreadId(room)) return undefined;
  return claimed === '*' || claimed === room ? room : undefined;
}

function refused(code: InviteRefusal): { readonly kind: 'refused'; readonly code: InviteRefusal } {
  return { kind: 'refused', code };
}
