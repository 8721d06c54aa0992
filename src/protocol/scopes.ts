/** OAuth scopes: what each lets a principal do, and how a list of them is written on one line. Free of zod. */
export const SCOPES = {
  'read:sandbox': 'list, inspect, read logs and files',
  'write:sandbox': 'create, rename, start, stop, delete, upload',
  'exec:sandbox': 'run commands, in the foreground and in the background',
  'attach:sandbox': 'open a terminal; not implied by exec',
  'admin:sandbox': 'everything under /admin, across tenants and owners',
} as const;

export type Scope = keyof typeof SCOPES;

/** What `ailsd login` asks for; whoever approves may untick some. */
export const LOGIN_SCOPES = [
  'read:sandbox',
  'write:sandbox',
  'exec:sandbox',
  'attach:sandbox',
] as const satisfies readonly Scope[];

export function isScope(word: string): word is Scope {
  return Object.hasOwn(SCOPES, word);
}

/**
 * The sandbox scopes in an OAuth `scope` value, each once, in the order of the table. Words are separated by spaces
 * (RFC 6749 section 3.3) and compared whole and by case; what is not ours (`openid`, `email`) is left out.
 */
export function parseScopes(text: string): readonly Scope[] {
  return inOrder(new Set(text.split(' ')));
}

/** The `scope` value for a set of scopes: the same set always gives the same text. */
export function formatScopes(scopes: Iterable<Scope>): string {
  return inOrder(new Set(scopes)).join(' ');
}

/** Whether any one of the needed scopes is held. Scopes imply nothing: admin alone does not read, exec does not attach. */
export function holdsAnyScope(held: readonly Scope[], needed: readonly Scope[]): boolean {
  return needed.some((scope) => held.includes(scope));
}

function inOrder(words: ReadonlySet<string>): readonly Scope[] {
  return Object.keys(SCOPES).filter((word): word is Scope => isScope(word) && words.has(word));
}
