/** Issues sandbox tokens: the row, the audit record and the token itself, all in the caller's transaction. */
import { Secret } from '../../../base/secret.js';
import { type Capability, formatCapabilities } from '../../../protocol/capabilities.js';
import { AilsdError } from '../../../protocol/errors.js';
import {
  type GrantId,
  newId,
  type RandomFill,
  type SandboxId,
  type SessionId,
  type ThreadId,
  type TokenId,
} from '../../../protocol/ids.js';
import { refreshBefore } from '../../../protocol/lifetimes.js';
import type { Principal } from '../../../protocol/principal.js';
import { Audit } from '../../store/audit.js';
import type { Db } from '../../store/db.js';
import { Grants } from '../../store/grants.js';
import { IssuedTokens } from '../../store/issued-tokens.js';
import { ServerSecrets } from '../../store/server-secrets.js';
import type { TokenMode } from '../../store/tenants.js';
import { createOpaqueToken, hashOpaqueToken } from '../../tokens/opaque-token.js';
import { SANDBOX_KEY_BYTES, SANDBOX_MASTER, SandboxKeys } from '../../tokens/sandbox-keys.js';
import { signSandboxToken } from '../../tokens/sandbox-token.js';

export interface MintRequest {
  readonly session: {
    readonly id: SessionId;
    readonly tenant: string;
    readonly threadId: ThreadId;
  };
  readonly sandbox: { readonly id: SandboxId; readonly keyGeneration: number };
  readonly principal: Principal;
  /** As `decideCapabilities` gave them; never empty. */
  readonly capabilities: readonly Capability[];
  readonly ttlSeconds: number;
  /** Of the session's tenant. */
  readonly tokenMode: TokenMode;
  readonly grantId?: GrantId | undefined;
  /** The token this one was got for by refreshing. */
  readonly replaces?: TokenId | undefined;
  /** The token this one is a narrower copy of. */
  readonly parent?: TokenId | undefined;
  /** Never counts after this, and nor does what it is refreshed into: the end of its grant, or of its parent. */
  readonly notAfterMs?: number | undefined;
  readonly requestId?: string | undefined;
}

export interface Minted {
  readonly token: Secret;
  readonly jti: TokenId;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly refreshBeforeMs: number;
}

export type MintToken = (tx: Db, request: MintRequest) => Promise<Minted>;

export function createMint({ keys, random }: MintParts): MintToken {
  return async (tx, request) => {
    const { session, sandbox, principal, ttlSeconds, tokenMode, notAfterMs } = request;
    const jti = newId('token', random);
    const scope = formatCapabilities(request.capabilities);
    if (scope === '') throw new AilsdError('INTERNAL', 'a token that allows nothing was asked for');
    // Whoever takes the grant back meanwhile waits for this, and then ends what was issued.
    if (request.grantId !== undefined && !(await new Grants(tx).hold(request.grantId)))
      throw new AilsdError('FORBIDDEN', 'the grant was taken back');
    const opaque = tokenMode === 'opaque' ? createOpaqueToken(random) : undefined;
    const { issuedAtMs, expiresAtMs } = await new IssuedTokens(tx).add(
      {
        jti,
        tenant: session.tenant,
        sandboxId: sandbox.id,
        sessionId: session.id,
        subject: principal.sub,
        act: principal.act,
        clientId: principal.clientId,
        scope,
        keyGeneration: sandbox.keyGeneration,
        grantId: request.grantId,
        parent: request.parent,
        // Claims have whole seconds; a moment in between is rounded to what is less.
        notAfterMs: notAfterMs === undefined ? undefined : Math.floor(notAfterMs / 1000) * 1000,
        hash: opaque && hashOpaqueToken(opaque),
      },
      ttlSeconds,
    );
    if (expiresAtMs <= issuedAtMs)
      throw new AilsdError('FORBIDDEN', 'what this access was given for is over');
    await new Audit(tx).record({
      event: 'token.issued',
      tenant: session.tenant,
      subject: principal.sub,
      actor: principal.act?.sub,
      clientId: principal.clientId,
      requestId: request.requestId,
      jti,
      threadId: session.threadId,
      sessionId: session.id,
      sandboxId: sandbox.id,
      details: {
        aud: sandbox.id,
        scope,
        expires_at: new Date(expiresAtMs).toISOString(),
        ...(request.replaces && { replaces: request.replaces }),
        ...(request.parent && { parent: request.parent }),
        ...(request.grantId && { grant: request.grantId }),
        ...(opaque && { mode: 'opaque' }),
      },
    });
    const token =
      opaque ??
      signSandboxToken(keys.keyOf(sandbox.id, sandbox.keyGeneration), {
        sub: principal.sub,
        aud: sandbox.id,
        scope,
        thread_id: session.threadId,
        room: session.threadId,
        exp: expiresAtMs / 1000,
        iat: issuedAtMs / 1000,
        jti,
        ...(principal.act && { act: principal.act }),
      });
    const refreshBeforeMs = refreshBefore(issuedAtMs, expiresAtMs);
    return { token, jti, issuedAtMs, expiresAtMs, refreshBeforeMs };
  };
}

export interface MintParts {
  readonly keys: SandboxKeys;
  readonly random: RandomFill;
}

/** At start-up, outside any transaction: all replicas of a store come to the same master. */
export async function openSandboxKeys(db: Db, random: RandomFill): Promise<SandboxKeys> {
  const master = await new ServerSecrets(db).ensure(SANDBOX_MASTER, () => {
    const bytes = random(new Uint8Array(SANDBOX_KEY_BYTES));
    return new Secret(Buffer.from(bytes).toString('base64url'));
  });
  return new SandboxKeys(master);
}
