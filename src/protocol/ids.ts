/** Names of things on the wire: how ids are made, and what counts as one when it comes from outside. */
import { AilsdError } from './errors.js';

declare const kind: unique symbol;
type Id<K extends string> = string & { readonly [kind]: K };

export type ThreadId = Id<'thread'>;
export type SandboxId = Id<'sandbox'>;
/** A session is a binding: one id under both names. */
export type SessionId = Id<'session'>;
export type ShellId = Id<'shell'>;
export type CommandId = Id<'command'>;
/** A token's `jti`. */
export type TokenId = Id<'token'>;
export type RequestId = Id<'request'>;
export type InvocationId = Id<'invocation'>;
export type SnapshotId = Id<'snapshot'>;
export type GrantId = Id<'grant'>;

export const ID_PREFIXES = {
  sandbox: 'sb_',
  session: 'ssn_',
  shell: 'sh_',
  command: 'cmd_',
  token: 'tok_',
  request: 'req_',
  invocation: 'inv_',
  snapshot: 'snap_',
  grant: 'grant_',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

/** Where fresh ids get their randomness: fills the array and returns it, like `crypto.getRandomValues`. */
export type RandomFill = (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

/** 26 characters of Crockford's base 32: 130 bits, no letters that are mistaken for digits, safe in any file or host name. */
export function newId<K extends IdKind>(of: K, random: RandomFill): Id<K> {
  const bytes = random(new Uint8Array(ID_LENGTH));
  let id: string = ID_PREFIXES[of];
  for (const byte of bytes) id += ALPHABET[byte & 31];
  return id as Id<K>;
}

const ID_LENGTH = 26;
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** Chosen by the caller, so `..`, `-rf` and `a:b` are all legal: never use one as a file, container or host name. */
export const THREAD_ID_PATTERN = /^[A-Za-z0-9._:-]{1,128}$/;

/** Ids other systems made may look different (`sbx_…`, `bind_…`); what we need of them is that they are short and plain. */
export const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

export function isThreadId(value: string): value is ThreadId {
  return THREAD_ID_PATTERN.test(value);
}

export function parseThreadId(value: string): ThreadId {
  if (isThreadId(value)) return value;
  throw new AilsdError('INVALID_REQUEST', 'that is not a thread id', {
    details: { field: 'thread_id' },
    hint: 'a thread id is 1 to 128 of A-Z a-z 0-9 . _ : -',
  });
}
