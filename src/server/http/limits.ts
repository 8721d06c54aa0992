/** How much of anything a caller may send, hold open or wait for, before we know who it is. */
export interface HttpLimits {
  /** All header lines of a request together. A token of 64 KB must still reach the check that refuses it. */
  readonly headerBytes: number;
  readonly headerCount: number;
  /** From the first byte of a connection to the end of its headers. */
  readonly headersTimeoutMs: number;
  /** To the end of the body. */
  readonly requestTimeoutMs: number;
  /** Between two requests. Longer than the 60 s of common proxies, so that they close first. */
  readonly keepAliveTimeoutMs: number;
  readonly connections: number;
  /** Of one address; a trusted proxy is many callers and has only the limit above. */
  readonly connectionsPerAddress: number;
  /** How long the requests in flight may take once we want to end. */
  readonly shutdownTimeoutMs: number;
}

export const HTTP_LIMITS: HttpLimits = {
  headerBytes: 80 * 1024,
  headerCount: 100,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 65_000,
  connections: 4_096,
  connectionsPerAddress: 1_024,
  shutdownTimeoutMs: 4_000,
};

/** A bearer token longer than this is none of ours. */
export const BEARER_MAX_BYTES = 16 * 1024;

/** How long, and how much, we go on reading what a caller sends after it was refused, so that it gets to see the answer. */
export const DRAIN_LIMITS = { ms: 500, bytes: 16 * 1024 * 1024 } as const;
