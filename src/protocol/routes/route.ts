/** What there is to say about one route. */
import type { Capability } from '../capabilities.js';
import type { ShapeName } from '../components.js';
import type { ErrorCode } from '../errors.js';
import type { Scope } from '../scopes.js';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Who serves it, and the heading it stands under in the docs. */
export const FAMILIES = {
  issuer: 'Login and tokens (S1): OAuth 2 and OpenID Connect',
  identity: 'Who is calling',
  sessions: 'Sessions (S2): access to the sandbox of a thread',
  threads: 'Threads (S3): the same sessions under another face',
  sandboxes: 'Sandboxes (S1), through the relay',
  commands: 'Commands (S1), through the relay',
  sharing: 'Sharing and narrowing a session (S3)',
  code: 'Code execution (S4)',
  gateway: 'Invites (S0): code and shells by a single-use token',
  admin: 'Administration',
  operations: 'What monitoring reads',
  internal: 'Between a sandbox and the broker',
  exec: 'Commands in a sandbox',
  files: 'Files in a sandbox',
  shells: 'Shells in a sandbox',
  sockets: 'Streams of a sandbox',
  relay: 'The same through the relay, for a sandbox that is reached through the broker alone',
} as const;

export type Family = keyof typeof FAMILIES;

/** How a caller proves who it is. */
export const AUTHS = {
  none: 'nobody is asked',
  browser: "the issuer's own cookie, after a person signed in",
  client: 'an OAuth client: by its id alone if it is public, else by secret or signed assertion',
  'access-token': "the issuer's RS256 token as bearer",
  'sandbox-token': "the sandbox's HS256 token as bearer; on a WebSocket also in the first frame",
  'sandbox-key': 'proof of being that sandbox: an assertion signed with its own key',
  invite: 'a single-use token in the query string',
} as const;

export type Auth = keyof typeof AUTHS;

/** A body: of a shape, as JSON unless `media` says otherwise; or, without one, text or bytes as they are. */
export type Content =
  | { readonly shape: ShapeName; readonly media?: string }
  | { readonly media: string; readonly shape?: never };

interface Common {
  readonly path: string;
  readonly family: Family;
  /** One line in the imperative. */
  readonly summary: string;
  /** What the line leaves out. */
  readonly notes?: string;
  readonly auth: Auth;
  /** OAuth scopes of which one is enough. */
  readonly scopes?: readonly Scope[];
  /** The MVP speaks here too: its code asks for the scopes itself, and knows by which name to refuse. */
  readonly isMvp?: true;
  /** What the sandbox token must allow, or what an access token's scopes must turn into. */
  readonly capability?: Capability;
  /** Capabilities of which one is enough. */
  readonly capabilities?: readonly Capability[];
  readonly query?: ShapeName;
  readonly errors: readonly ErrorCode[];
}

export interface HttpRoute extends Common {
  readonly method: Method;
  readonly request?: Content;
  /** The bodies each good status may come with. */
  readonly answers: Readonly<Record<number, readonly Content[]>>;
  /** Headers beyond those every route understands. */
  readonly headers?: readonly HeaderName[];
  /** Whether sending it again does no more than sending it once. */
  readonly idempotent: boolean;
}

export interface SocketRoute extends Common {
  readonly method: 'WS';
  /** What frames need that change something, where that is more than `capability`. */
  readonly writes?: Capability;
  /** The one message the client sends, where there are no frames. */
  readonly message?: ShapeName;
}

export type Route = HttpRoute | SocketRoute;

/** Request headers with a meaning of their own. */
export const HEADERS = {
  'Idempotency-Key':
    'the same key and body get the same answer for 24 hours; another body gets 409',
  Prefer: '`wait=N`: wait up to N seconds (at most 60) for the sandbox to start',
  'If-Match': 'only if the content still has this ETag, else 412',
  'If-None-Match': 'only if the content has another ETag; `*`: only if there is none',
  Range: 'a part of the content: `bytes=…`',
} as const;

export type HeaderName = keyof typeof HEADERS;
