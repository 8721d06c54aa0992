/** A thread's sandbox in hand: where it is, what may be done there, and a token that stays good. */
import type { Secret } from '../../base/secret.js';
import type { Capability } from '../../protocol/capabilities.js';
import type { SandboxId, SessionId, ThreadId } from '../../protocol/ids.js';

/** Use it with `await using`: closing ends its timers and gives nothing back to the server; that is `release`. */
export interface Session extends AsyncDisposable {
  readonly sessionId: SessionId;
  readonly threadId: ThreadId;
  readonly sandboxId: SandboxId;
  readonly provider: string;
  /** Base URLs: put a route's path behind them with `underBaseUrl`. They may change with `reopen`. */
  readonly httpUrl: string;
  readonly wsUrl: string;
  /** What the token allows, in canonical words; absent where the server did not say. */
  readonly capabilities: readonly Capability[] | undefined;
  /** When the token in hand ends, by this machine's clock. */
  readonly expiresAtMs: number;
  /** False for access that was negotiated elsewhere: its token is all there is. */
  readonly canRefresh: boolean;
  /** Aborts when the session is closed, and when the server says that it is over. */
  readonly signal: AbortSignal;

  /** One that is good now: renewed first if it is due. TOKEN_EXPIRED where it is over and cannot be renewed. */
  token(signal?: AbortSignal): Promise<Secret>;
  /** Another one, whatever is thought of the one in hand: the sandbox has just refused it. One request for all who ask at once. */
  refresh(signal?: AbortSignal): Promise<Secret>;
  /** Every token that follows the one in hand, so that a live connection can send it on. Ends with the session. */
  tokens(signal?: AbortSignal): AsyncGenerator<Secret, void, undefined>;
  /** Negotiates again: for a sandbox that was suspended or moved while the line was cut. */
  reopen(signal?: AbortSignal): Promise<void>;
  /** Keeps the sandbox for a full idle timeout more. It is also done on a timer while the session is open. */
  heartbeat(signal?: AbortSignal): Promise<Lease>;
  /** Lets go of the sandbox, as well as that can be done: never throws, never waits long. */
  release(): Promise<void>;
}

export interface Lease {
  readonly state: string;
  readonly expiresAtMs: number;
}
