/** What a negotiation asks for and what it comes to, whatever face it came through. */
import type { ActorType, Vocabulary } from '../../../protocol/capabilities.js';
import type { ThreadId } from '../../../protocol/ids.js';
import type { Adjustment } from '../../../protocol/shapes/envelope.js';
import type { Db } from '../../store/db.js';
import type { IdempotencyKey } from '../../store/idempotency.js';
import type { SandboxRecord } from '../../store/sandboxes.js';
import type { NewSession, ScopeType, SessionRecord } from '../../store/sessions.js';
import type { Minted } from '../tokens/mint.js';
import type { Caller } from './caller.js';

/** `get` only looks; `attach_only` wakes what is there; `ensure` makes it if it must; `create_only` never finds it there. */
export type NegotiationMode = 'get' | 'ensure' | 'attach_only' | 'create_only';

export interface Negotiation {
  readonly caller: Caller;
  readonly scope: { readonly type: ScopeType; readonly id: ThreadId };
  readonly mode: NegotiationMode;
  readonly actor?: ActorType | undefined;
  readonly requested?: readonly string[] | undefined;
  /** The words to answer in where the request's could be either. */
  readonly vocabulary: Vocabulary;
  /** How the request calls its list of capabilities. */
  readonly capabilitiesField: string;
  /** A sandbox the caller had before. */
  readonly hint?: string | undefined;
  /** How the request calls it. */
  readonly hintField: string;
  readonly providerPreference?: string | undefined;
  readonly template?: string | undefined;
  readonly ttl?: number | undefined;
  readonly key?: IdempotencyKey | undefined;
  /** How long the caller wants to wait for a sandbox that somebody else is starting. */
  readonly waitMs: number;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** In the transaction that makes the session, where this request is the one that makes it. */
  readonly onCreated?: ((tx: Db, session: NewSession) => Promise<void>) | undefined;
}

export interface Negotiated {
  readonly session: SessionRecord;
  readonly sandbox: SandboxRecord & { readonly endpoints: NonNullable<SandboxRecord['endpoints']> };
  readonly minted: Minted;
  /** Granted capabilities in the words of the request. */
  readonly words: readonly string[];
  readonly adjustments: readonly Adjustment[];
}
