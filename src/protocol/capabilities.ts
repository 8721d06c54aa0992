/** What a sandbox token lets its holder do: the words for it, what implies what, and how a grant is worked out. Free of zod. */
import { isScope, type Scope } from './scopes.js';

interface CapabilityRow {
  readonly grants: string;
  /** What holding this includes. */
  readonly implies: readonly string[];
  /** How S2 spells it. The last word is its own; words before it are spelled out because S2 has no implication. */
  readonly s2: readonly [...string[], string];
}

/** In the order in which answers and tokens list them. */
export const CAPABILITIES = {
  'fs:ro': { grants: 'read files', implies: [], s2: ['fs_read'] },
  'fs:rw': { grants: 'read and write files', implies: ['fs:ro'], s2: ['fs_read', 'fs_write'] },
  shell: { grants: 'an interactive shell', implies: ['shell:ro'], s2: ['shell'] },
  'shell:ro': {
    grants: 'watch a shell, without input, resizing or signals',
    implies: [],
    s2: ['shell_read'],
  },
  process: { grants: 'start and stop processes', implies: [], s2: ['exec'] },
  snapshot: { grants: 'take and restore snapshots', implies: [], s2: ['snapshot'] },
  tunnel: { grants: 'reach TCP ports inside the sandbox', implies: [], s2: ['tunnel'] },
} as const satisfies Record<string, CapabilityRow>;

export type Capability = keyof typeof CAPABILITIES;

/** Whose words: `canonical` is S3's and our tokens' (`fs:rw`), `s2` the full session protocol's (`fs_read fs_write`). */
export type Vocabulary = 'canonical' | 's2';

export type ActorType = 'human' | 'agent';

/** What an actor gets that asked for nothing in particular. */
export const DEFAULT_CAPABILITIES = {
  human: ['fs:rw', 'shell'],
  agent: ['fs:rw', 'process'],
} as const satisfies Record<ActorType, readonly Capability[]>;

/** The most that each OAuth scope can turn into at a sandbox. */
export const SCOPE_CAPABILITIES = {
  'read:sandbox': ['fs:ro'],
  'write:sandbox': ['fs:rw', 'snapshot'],
  'exec:sandbox': ['process'],
  'attach:sandbox': ['shell', 'shell:ro', 'tunnel'],
  'admin:sandbox': [],
} as const satisfies Record<Scope, readonly Capability[]>;

export function isCapability(word: string): word is Capability {
  return Object.hasOwn(CAPABILITIES, word);
}

/** Whether what is held allows what is needed, by itself or by implication: `shell` may observe, `shell:ro` never types. */
export function allows(held: readonly Capability[], needed: Capability): boolean {
  return withImplied(held).has(needed);
}

/**
 * Reads the `scope` claim of a sandbox token: canonical words with one space between. Anything else (another case,
 * commas, an array, an unknown word, nothing at all) is no scope, and the token that says it is not one of ours.
 */
export function parseCapabilities(claim: unknown): readonly Capability[] | undefined {
  if (typeof claim !== 'string') return undefined;
  const words = claim.split(' ');
  return words.every(isCapability) ? withoutImplied(new Set(words)) : undefined;
}

/** The `scope` claim for a set of capabilities: the same set always gives the same text. */
export function formatCapabilities(capabilities: Iterable<Capability>): string {
  return withoutImplied(new Set(capabilities)).join(' ');
}

/** S2's words for a set of capabilities. */
export function toS2(capabilities: Iterable<Capability>): readonly string[] {
  const words = withoutImplied(new Set(capabilities)).flatMap((one) => CAPABILITIES[one].s2);
  return [...new Set(words)];
}

/** What a word of either vocabulary means. `fs_write` means `fs:rw`: nothing here writes without being able to read. */
export function fromWord(word: string): Capability | undefined {
  return isCapability(word) ? word : S2_WORDS.get(word);
}

const S2_WORDS = new Map<string, Capability>(
  names().map((capability) => [CAPABILITIES[capability].s2.at(-1) ?? capability, capability]),
);

export interface GrantInput {
  /** What was asked for, in either vocabulary. Unknown words are denied, not errors: a newer client may know more. */
  readonly requested: readonly string[];
  /** The caller's OAuth scopes. A word that is none of ours (`openid`) gives nothing. */
  readonly scopes: readonly string[];
  /** Further limits; one that is absent does not limit. */
  readonly ceiling?: readonly Capability[] | undefined;
  readonly actorPolicy?: readonly Capability[] | undefined;
  readonly grant?: readonly Capability[] | undefined;
  /** Which words to answer in when those of the request are common to both vocabularies. */
  readonly vocabulary?: Vocabulary | undefined;
}

export interface Granted {
  /** Canonical, implied ones left out. Empty means refused: 403. */
  readonly capabilities: readonly Capability[];
  /** The same in the vocabulary of the request. */
  readonly words: readonly string[];
  /** What was asked for and is only partly there. */
  readonly downgraded: readonly { readonly requested: string; readonly granted: string }[];
  /** What was asked for and is not there at all. */
  readonly denied: readonly string[];
}

/** Requested ∩ OAuth scopes ∩ client ceiling ∩ actor policy ∩ grant, where having more includes having less. */
export function grantCapabilities(input: GrantInput): Granted {
  const requested = [...new Set(input.requested)];
  const limits = [
    input.scopes
      .filter(isScope)
      .flatMap((scope): readonly Capability[] => SCOPE_CAPABILITIES[scope]),
    input.ceiling,
    input.actorPolicy,
    input.grant,
  ].filter((limit) => limit !== undefined);

  const wanted = withImplied(requested.map(fromWord).filter((one) => one !== undefined));
  const held = limits.map(withImplied).reduce(intersection, wanted);
  const spell = vocabularyOf(requested) ?? input.vocabulary ?? 'canonical';

  const downgraded: { requested: string; granted: string }[] = [];
  const denied: string[] = [];
  for (const word of requested) {
    const meaning = fromWord(word);
    if (meaning !== undefined && held.has(meaning)) continue;
    const rest = meaning === undefined ? [] : intersection(withImplied([meaning]), held);
    const granted = inWords(rest, spell).join(' ');
    if (granted === '') denied.push(word);
    else downgraded.push({ requested: word, granted });
  }
  return { capabilities: withoutImplied(held), words: inWords(held, spell), downgraded, denied };
}

/** The vocabulary a list of words gives away, if any: `shell` alone belongs to both. Mixed lists are answered canonically. */
export function vocabularyOf(words: readonly string[]): Vocabulary | undefined {
  const only = (known: (word: string) => boolean, other: (word: string) => boolean): boolean =>
    words.some((word) => known(word) && !other(word));
  const isS2 = (word: string): boolean => S2_WORDS.has(word);
  if (only(isCapability, isS2)) return 'canonical';
  return only(isS2, isCapability) ? 's2' : undefined;
}

function inWords(capabilities: Iterable<Capability>, vocabulary: Vocabulary): readonly string[] {
  return vocabulary === 's2' ? toS2(capabilities) : withoutImplied(new Set(capabilities));
}

function withImplied(capabilities: readonly Capability[]): ReadonlySet<Capability> {
  return new Set(capabilities.flatMap((one) => [one, ...CAPABILITIES[one].implies]));
}

/** The shortest list that means the same, in the table's order. */
function withoutImplied(capabilities: ReadonlySet<Capability>): readonly Capability[] {
  const implied = new Set(
    [...capabilities].flatMap((one): readonly Capability[] => CAPABILITIES[one].implies),
  );
  return names().filter((one) => capabilities.has(one) && !implied.has(one));
}

function intersection(
  left: ReadonlySet<Capability>,
  right: ReadonlySet<Capability>,
): ReadonlySet<Capability> {
  return new Set([...left].filter((one) => right.has(one)));
}

function names(): readonly Capability[] {
  return Object.keys(CAPABILITIES).filter(isCapability);
}
