/** Sharing and narrowing (S3 phase 3): grants, smaller tokens, revocation, invites and snapshots of one session. */
import { Secret } from '../../../base/secret.js';
import type { RouteName } from '../../../protocol/routes.js';
import { pageQuery } from '../../../protocol/shapes/envelope.js';
import {
  downscopeRequest,
  type Grant,
  grantRequest,
  inviteRequest,
  revokeRequest,
  type Snapshot,
  snapshotRequest,
} from '../../../protocol/shapes/sharing.js';
import type { Call, RouteCode } from '../../http/call.js';
import type { GrantRecord } from '../../store/grants.js';
import type { SnapshotRecord } from '../../store/snapshots.js';
import type { AccessDelivery } from '../access/delivery.js';
import type { BrokerParts } from '../parts.js';
import { type CallerPolicy, requirePolicy } from '../policy/decide.js';
import type { Caller } from '../sessions/caller.js';
import { type FoundSession, findSession, notTheOwner } from '../sessions/find.js';
import { createGrant, deleteGrant, listGrants } from '../sharing/grants.js';
import { createInvite, type InviteParts } from '../sharing/invites.js';
import { createSnapshot, listSnapshots, restoreSnapshot } from '../sharing/snapshots.js';
import { downscopeToken } from '../tokens/downscope.js';
import type { MintToken } from '../tokens/mint.js';
import type { ProofParts } from '../tokens/proof.js';
import { revokeToken, rotateKey } from '../tokens/revoke.js';
import { inFace } from './face-errors.js';
import { pageAsked, toPage } from './pages.js';
import { callerOf, idempotencyKeyOf } from './request-headers.js';
import { timeOf } from './session-shapes.js';
import { noteSession } from './sessions.js';

export interface SharingParts {
  readonly broker: BrokerParts;
  readonly keys: ProofParts['keys'];
  readonly mint: MintToken;
  readonly delivery: AccessDelivery;
  readonly inviteSecret: InviteParts['secret'];
}

type SharingRoute = Extract<
  RouteName,
  | 'createGrant'
  | 'listGrants'
  | 'deleteGrant'
  | 'downscopeToken'
  | 'rotateKey'
  | 'revokeSandboxToken'
  | 'createInvite'
  | 'createSnapshot'
  | 'listSnapshots'
  | 'restoreSnapshot'
>;

export function sharingRoutes(parts: SharingParts): Record<SharingRoute, RouteCode> {
  return { ...grantRoutes(parts), ...tokenRoutes(parts), ...snapshotRoutes(parts) };
}

function grantRoutes({ broker, delivery }: SharingParts) {
  const { db, random } = broker;
  return {
    createGrant: mvp(async (call) => {
      const { grantee, capabilities, expires_at: expiresAt } = await call.body(grantRequest);
      const asked = await ask(broker, call);
      const expiresAtMs = expiresAt === undefined ? undefined : Date.parse(expiresAt);
      const request = { ...asked, grantee, capabilities, expiresAtMs };
      const grant = await createGrant({ db, random, delivery }, request);
      return { status: 201, body: toGrant(grant) };
    }),

    listGrants: mvp(async (call) => {
      const page = pageAsked(call.query(pageQuery));
      const { found } = await find(broker, call);
      const grants = await listGrants(broker, { found, limit: page.limit + 1, after: page.after });
      return { body: toPage(grants, page, ({ id }) => id, toGrant) };
    }),

    deleteGrant: mvp(async (call) => {
      const found = await find(broker, call);
      await deleteGrant({ db, delivery }, { ...found, id: call.parameter('grant_id') });
      return { status: 204 };
    }),
  };
}

function tokenRoutes({ broker, keys, mint, delivery, inviteSecret: secret }: SharingParts) {
  const { db, random, url } = broker;
  return {
    downscopeToken: mvp(async (call) => {
      const { current_token: token, scopes, ttl } = await call.body(downscopeRequest);
      const { found, ...asked } = await ask(broker, call);
      const currentToken = new Secret(token);
      const narrowed = await downscopeToken(
        { db, keys, mint },
        { ...asked, ...found, currentToken, scopes, ttl },
      );
      call.exchange.note({ token_jti: narrowed.jti });
      const { adjustments } = narrowed;
      return {
        body: {
          token: narrowed.token.reveal(),
          expires_at: timeOf(narrowed.expiresAtMs),
          scopes: [...narrowed.words],
          refresh_before: timeOf(narrowed.refreshBeforeMs),
          ...(adjustments.length > 0 && { adjustments: [...adjustments] }),
        },
      };
    }),

    rotateKey: mvp(async (call) => {
      const { found, caller } = await find(broker, call);
      if (found.access.kind === 'grant') throw notTheOwner();
      await rotateKey({ db, delivery }, { caller, session: found.session });
      return { status: 204 };
    }),

    revokeSandboxToken: mvp(async (call) => {
      const { jti } = await call.body(revokeRequest);
      const { found, caller } = await find(broker, call);
      const isGuest = found.access.kind === 'grant';
      await revokeToken({ db, delivery }, { caller, session: found.session, jti, isGuest });
      return { status: 204 };
    }),

    createInvite: mvp(async (call) => {
      const { endpoint, room, elevated: isElevated } = await call.body(inviteRequest);
      const asked = await ask(broker, call);
      const request = { ...asked, endpoint, room, isElevated };
      const invite = await createInvite({ db, random, secret, url }, request);
      const body = {
        token: invite.token.reveal(),
        expires_at: timeOf(invite.expiresAtMs),
        url: invite.url,
      };
      return { status: 201, body };
    }),
  };
}

function snapshotRoutes({ broker }: SharingParts) {
  return {
    createSnapshot: mvp(async (call) => {
      const request = await call.body(snapshotRequest);
      const given = idempotencyKeyOf(call, 'createSnapshot', request);
      const key = given && JSON.stringify([given.caller, given.key]);
      const { signal } = call.exchange;
      const asked = await ask(broker, call);
      const snapshot = await createSnapshot(broker, { ...asked, name: request.name, key, signal });
      return { status: 201, body: toSnapshot(snapshot) };
    }),

    listSnapshots: mvp(async (call) => {
      const page = pageAsked(call.query(pageQuery));
      const asked = await ask(broker, call);
      const request = { ...asked, limit: page.limit + 1, after: page.after };
      const snapshots = await listSnapshots(broker, request);
      return { body: toPage(snapshots, page, ({ id }) => id, toSnapshot) };
    }),

    restoreSnapshot: mvp(async (call) => {
      const asked = await ask(broker, call);
      const { signal } = call.exchange;
      const id = call.parameter('snapshot_id');
      return { body: toSnapshot(await restoreSnapshot(broker, { ...asked, id, signal })) };
    }),
  };
}

function mvp(code: RouteCode): RouteCode {
  return (call) => inFace('mvp', async () => code(call));
}

/** For what only takes away: that stays possible whatever the tenant's policy has become. */
async function find(
  { db }: BrokerParts,
  call: Call,
): Promise<{ readonly caller: Caller; readonly found: FoundSession }> {
  const caller = callerOf(call);
  const found = await findSession(db, call.parameter('session_id'), caller);
  noteSession(call, found);
  return { caller, found };
}

/** For what gives something: the tenant must be let in. */
async function ask(
  broker: BrokerParts,
  call: Call,
): Promise<{ caller: Caller; found: FoundSession; policy: CallerPolicy }> {
  const { caller, found } = await find(broker, call);
  const { tenant, threadId } = found.session;
  const policy = await requirePolicy(broker.db, { ...caller, tenant, threadId });
  return { caller, found, policy };
}

function toGrant(grant: GrantRecord): Grant {
  const { expiresAtMs } = grant;
  return {
    id: grant.id,
    session_id: grant.sessionId,
    grantee: grant.grantee,
    capabilities: [...grant.capabilities],
    ...(expiresAtMs !== undefined && { expires_at: timeOf(expiresAtMs) }),
    created_at: timeOf(grant.createdAtMs),
    created_by: grant.createdBy,
  };
}

function toSnapshot(snapshot: SnapshotRecord): Snapshot {
  const { name, sizeBytes } = snapshot;
  return {
    id: snapshot.id,
    session_id: snapshot.sessionId,
    sandbox_id: snapshot.sandboxId,
    ...(name !== undefined && { name }),
    ...(sizeBytes !== undefined && { size_bytes: sizeBytes }),
    created_at: timeOf(snapshot.createdAtMs),
  };
}
