/** How long tokens, invites and sandboxes live, and how much slack clocks are given. Free of zod; seconds throughout. */

export const ACCESS_TOKEN_SECONDS = 900;

/** The bounds of a requested `ttl`; a sandbox token lives no longer, though narrowing one may leave it less. */
export const SANDBOX_TOKEN_SECONDS = { min: 60, max: 900 } as const;

export const INVITE_SECONDS = 60;

/** How far a token may be past its end and still count. Invites get none. */
export const LEEWAY_SECONDS = { access: 30, sandbox: 5, invite: 0 } as const;

/** How far ahead of our clock an `iat` may be. */
export const ISSUED_AHEAD_SECONDS = 60;

/** How long a sandbox token still works after it was refreshed. */
export const REFRESH_OVERLAP_SECONDS = 30;

/** How soon a revoked `jti` or a new key has reached the sandbox. */
export const REVOCATION_SECONDS = 2;

/** Without a heartbeat, an open shell or a running command for this long, a sandbox is idle. */
export const IDLE_TIMEOUT_SECONDS = 900;

/** However busy, a sandbox ends after this. */
export const HARD_TTL_SECONDS = 28_800;

/** The whole seconds a token gets for the `ttl` that was asked for; the answer says so when they differ. */
export function clampTtl(requested: number): number {
  const { min, max } = SANDBOX_TOKEN_SECONDS;
  return Math.min(max, Math.max(min, Math.floor(requested)));
}

/** When to have refreshed a token: one third of its life before its end. All in the same unit. */
export function refreshBefore(issuedAt: number, expiresAt: number): number {
  return expiresAt - Math.floor((expiresAt - issuedAt) / 3);
}
