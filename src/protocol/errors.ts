/** Every error this project can report, in one table: what HTTP, WebSocket, exit status and hint go with each code. */
import type { CloseName } from './closes.js';

/** The process exit statuses an error can lead to; `cli/exit-codes.ts` says what each means. */
export type ErrorExit = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 125 | 255;

export interface ErrorRow {
  /** HTTP status; for errors that only ever arise in a client, the nearest one. */
  readonly status: number;
  /** How a WebSocket ends on it: a name in `closes.ts`. */
  readonly close: CloseName;
  readonly exit: ErrorExit;
  readonly retryable: boolean;
  /** What the reader can do, in the imperative. */
  readonly hint: string;
}

export const ERRORS = {
  // The request itself
  INVALID_REQUEST: {
    status: 400,
    close: 'protocolError',
    exit: 2,
    retryable: false,
    hint: 'correct the named field and send it again',
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    close: 'tooBig',
    exit: 2,
    retryable: false,
    hint: 'send less at once',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    close: 'protocolError',
    exit: 2,
    retryable: false,
    hint: 'see docs/protocol.md for the methods of this path',
  },
  NOT_ACCEPTABLE: {
    status: 406,
    close: 'protocolError',
    exit: 2,
    retryable: false,
    hint: 'ask for a format this path can answer in',
  },

  // Who is asking
  UNAUTHENTICATED: {
    status: 401,
    close: 'invalidToken',
    exit: 4,
    retryable: false,
    hint: 'run `ailsd login`',
  },
  TOKEN_MISSING: {
    status: 401,
    close: 'missingToken',
    exit: 4,
    retryable: false,
    hint: 'send the token in the first frame or the Authorization header',
  },
  TOKEN_EXPIRED: {
    status: 401,
    close: 'tokenExpired',
    exit: 4,
    retryable: false,
    hint: 'refresh the token, or run `ailsd login`',
  },
  NOT_LOGGED_IN: {
    status: 401,
    close: 'missingToken',
    exit: 4,
    retryable: false,
    hint: 'run `ailsd login`, or set AILSD_TOKEN',
  },
  LOGIN_DENIED: {
    status: 403,
    close: 'notAllowed',
    exit: 4,
    retryable: false,
    hint: 'the request was denied in the browser; run `ailsd login` to ask again',
  },
  LOGIN_EXPIRED: {
    status: 401,
    close: 'tokenExpired',
    exit: 4,
    retryable: false,
    hint: 'the code ran out before it was approved; run `ailsd login` again',
  },
  LOGIN_REVOKED: {
    status: 401,
    close: 'invalidToken',
    exit: 4,
    retryable: false,
    hint: 'the login was ended by the server; run `ailsd login` again',
  },
  LOGIN_FAILED: {
    status: 502,
    close: 'internal',
    exit: 4,
    retryable: false,
    hint: 'check the server URL with `ailsd config get url`',
  },
  CREDENTIALS_UNSAFE: {
    status: 403,
    close: 'notAllowed',
    exit: 4,
    retryable: false,
    hint: 'make the credential file and its folder yours alone (0600 and 0700)',
  },
  CREDENTIALS_UNWRITABLE: {
    status: 507,
    close: 'internal',
    exit: 4,
    retryable: false,
    hint: 'free space or make the folder writable; what was stored before is intact',
  },
  KEYCHAIN_UNAVAILABLE: {
    status: 503,
    close: 'internal',
    exit: 4,
    retryable: false,
    hint: 'unlock the keychain, or set AILSD_CREDENTIAL_STORE=file',
  },

  // What they may do
  FORBIDDEN: {
    status: 403,
    close: 'notAllowed',
    exit: 5,
    retryable: false,
    hint: 'ask the owner to share it: `ailsd share add`',
  },
  CAPABILITY_DENIED: {
    status: 403,
    close: 'notAllowed',
    exit: 5,
    retryable: false,
    hint: 'log in again with the missing scope, or ask the owner for the capability',
  },
  ROOM_FORBIDDEN: {
    status: 403,
    close: 'unauthorizedRoom',
    exit: 5,
    retryable: false,
    hint: 'use the room the invite was made for',
  },

  // What they asked for
  NOT_FOUND: {
    status: 404,
    close: 'notAllowed',
    exit: 3,
    retryable: false,
    hint: 'check the name; things of other owners are not shown',
  },
  SESSION_NOT_FOUND: {
    status: 404,
    close: 'notAllowed',
    exit: 3,
    retryable: false,
    hint: 'create it with `ailsd session ensure THREAD`',
  },
  BINDING_NOT_FOUND: {
    status: 404,
    close: 'notAllowed',
    exit: 3,
    retryable: false,
    hint: 'create it with `ailsd session ensure THREAD`',
  },
  SESSION_EXPIRED: {
    status: 410,
    close: 'notAllowed',
    exit: 3,
    retryable: false,
    hint: 'its time is over; `ailsd session ensure THREAD` makes a new one',
  },
  SESSION_CONFLICT: {
    status: 409,
    close: 'notAllowed',
    exit: 6,
    retryable: false,
    hint: 'look at what is there with `ailsd session get THREAD`',
  },
  BINDING_CONFLICT: {
    status: 409,
    close: 'notAllowed',
    exit: 6,
    retryable: false,
    hint: 'look at what is there with `ailsd session get THREAD`',
  },
  ALREADY_EXISTS: {
    status: 409,
    close: 'notAllowed',
    exit: 6,
    retryable: false,
    hint: 'choose another name, or look at what is there',
  },
  PRECONDITION_FAILED: {
    status: 412,
    close: 'notAllowed',
    exit: 6,
    retryable: false,
    hint: 'somebody changed it since; read it again and decide',
  },
  RANGE_NOT_SATISFIABLE: {
    status: 416,
    close: 'notAllowed',
    exit: 2,
    retryable: false,
    hint: 'ask for a range inside the file',
  },
  SYNC_HALTED: {
    status: 409,
    close: 'notAllowed',
    exit: 6,
    retryable: false,
    hint: 'nothing was deleted; look at both sides, then choose with `ailsd sync resolve`',
  },
  PROBLEMS_LEFT: {
    status: 409,
    close: 'notAllowed',
    exit: 6,
    retryable: false,
    hint: 'the listed items need a decision; everything else is done',
  },

  // What the server can do now
  SANDBOX_STARTING: {
    status: 423,
    close: 'tryLater',
    exit: 7,
    retryable: true,
    hint: 'wait for it: `Prefer: wait=60`, or try again after Retry-After',
  },
  RATE_LIMITED: {
    status: 429,
    close: 'tryLater',
    exit: 8,
    retryable: true,
    hint: 'wait as long as Retry-After says',
  },
  QUOTA_EXCEEDED: {
    status: 429,
    close: 'tryLater',
    exit: 8,
    retryable: false,
    hint: 'wait for the window to reset, or ask an admin to raise the quota',
  },
  PROVIDER_UNAVAILABLE: {
    status: 503,
    close: 'tryLater',
    exit: 7,
    retryable: true,
    hint: 'try again; if it stays, ask whoever runs the server',
  },
  BACKEND_UNAVAILABLE: {
    status: 503,
    close: 'tryLater',
    exit: 7,
    retryable: true,
    hint: 'try again; if it stays, ask whoever runs the server',
  },
  STORAGE_FULL: {
    status: 507,
    close: 'notAllowed',
    exit: 7,
    retryable: false,
    hint: 'free space in the sandbox; the file before is whole',
  },
  INTERNAL: {
    status: 500,
    close: 'internal',
    exit: 1,
    retryable: true,
    hint: 'run it again with --debug and report what it prints',
  },

  // Only ever said by a client
  USAGE: {
    status: 400,
    close: 'protocolError',
    exit: 2,
    retryable: false,
    hint: 'run it with --help',
  },
  CONFIG_INVALID: {
    status: 400,
    close: 'protocolError',
    exit: 2,
    retryable: false,
    hint: 'see `ailsd config path` for where settings are kept',
  },
  NOT_A_TERMINAL: {
    status: 400,
    close: 'protocolError',
    exit: 2,
    retryable: false,
    hint: 'run it in a terminal, or use `ailsd exec` in scripts',
  },
  UNHEALTHY: {
    status: 503,
    close: 'internal',
    exit: 1,
    retryable: false,
    hint: 'mend what is marked as failed, then run `ailsd doctor` again',
  },
  OUTPUT_FAILED: {
    status: 507,
    close: 'internal',
    exit: 1,
    retryable: false,
    hint: 'check where standard output goes: its disk may be full',
  },
  UNREACHABLE: {
    status: 503,
    close: 'tryLater',
    exit: 7,
    retryable: true,
    hint: 'check the network and the server URL; `ailsd doctor` looks for the cause',
  },
  PROTOCOL_MISMATCH: {
    status: 502,
    close: 'protocolError',
    exit: 7,
    retryable: false,
    hint: 'client and server disagree; compare `ailsd version` with the server',
  },
  TIMEOUT: {
    status: 504,
    close: 'tryLater',
    exit: 9,
    retryable: true,
    hint: 'give it longer with --timeout',
  },
  COMMAND_NOT_STARTED: {
    status: 503,
    close: 'internal',
    exit: 125,
    retryable: true,
    hint: 'the command did not run; try again',
  },
  TRANSPORT_LOST: {
    status: 502,
    close: 'tryLater',
    exit: 255,
    retryable: false,
    hint: 'the outcome is not known; look it up with `ailsd job list`',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

export function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERRORS, value);
}

export function errorRow(code: ErrorCode): ErrorRow {
  return ERRORS[code];
}

export interface ErrorParts {
  readonly cause?: unknown;
  /** Facts a caller may read: they travel in the envelope beside code and message. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** Words for the log alone; never sent, never printed without --debug. */
  readonly internal?: string;
  /** A better hint than the table's, for this very case. */
  readonly hint?: string;
}

/** A promise that could not be kept. Callers switch on `code`; the text is for people. */
export class AilsdError extends Error {
  override readonly name = 'AilsdError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly internal: string | undefined;
  readonly hint: string;

  constructor(code: ErrorCode, message: string, parts: ErrorParts = {}) {
    super(message, 'cause' in parts ? { cause: parts.cause } : undefined);
    this.code = code;
    this.details = parts.details ?? {};
    this.internal = parts.internal;
    this.hint = parts.hint ?? ERRORS[code].hint;
  }

  get row(): ErrorRow {
    return ERRORS[this.code];
  }
}

/** Which vocabulary a caller speaks: the MVP names or the full ones. */
export type Face = 'mvp' | 'full';

/** The pairs that mean one thing under two names; every other code is called the same everywhere. */
export const FACE_NAMES = [
  { mvp: 'SESSION_NOT_FOUND', full: 'BINDING_NOT_FOUND' },
  { mvp: 'SESSION_CONFLICT', full: 'BINDING_CONFLICT' },
  { mvp: 'FORBIDDEN', full: 'CAPABILITY_DENIED' },
  { mvp: 'PROVIDER_UNAVAILABLE', full: 'BACKEND_UNAVAILABLE' },
] as const satisfies readonly Record<Face, ErrorCode>[];

export function codeForFace(code: ErrorCode, face: Face): ErrorCode {
  for (const pair of FACE_NAMES) {
    if (pair.mvp === code || pair.full === code) return pair[face];
  }
  return code;
}
