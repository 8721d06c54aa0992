/**
 * One line of an ignore file, with the meaning git gives it, except that `?` and `[…]` stand for a character where git means
 * a byte. The lines may come from a sandbox nobody vouches for, so matching
 * takes at most the time of pattern times path: it never backs up further than its last star.
 */

export interface IgnorePattern {
  /** `!`: what matches is wanted after all. */
  readonly isNegated: boolean;
  readonly isFolderOnly: boolean;
  /** Matched against the path from where the file is; otherwise against the name alone. */
  readonly isAnchored: boolean;
  /** What is between slashes; `**` stands for any number of names. */
  readonly segments: readonly (Segment | '**')[];
}

/** `undefined` for a line that says nothing: empty, a comment, or one that nothing can match. */
export function parseIgnorePattern(line: string): IgnorePattern | undefined {
  let text = trimEnd(line);
  if (text === '' || text.startsWith('#')) return undefined;
  const isNegated = text.startsWith('!');
  if (isNegated) text = text.slice(1);
  const isFolderOnly = text.endsWith('/');
  if (isFolderOnly) text = text.slice(0, -1);
  const isAnchored = text.includes('/');
  if (text.startsWith('/')) text = text.slice(1);
  if (text === '') return undefined;
  const parts = text.split('/');
  const segments: (Segment | '**')[] = [];
  for (const [at, part] of parts.entries()) {
    if (part === '**' && isAnchored) {
      // At the end it stands for one name at least: what is in the folder, not the folder.
      if (at === parts.length - 1) segments.push([{ kind: 'any' }]);
      if (segments.at(-1) !== '**') segments.push('**');
      continue;
    }
    const segment = parseSegment(part);
    if (segment === undefined) return undefined;
    segments.push(segment);
  }
  return { isNegated, isFolderOnly, isAnchored, segments };
}

/** `path` is relative to the folder the pattern was written in, and nothing above it is ignored. */
export function matchesPattern(pattern: IgnorePattern, path: string, isFolder: boolean): boolean {
  if (pattern.isFolderOnly && !isFolder) return false;
  if (!pattern.isAnchored) {
    const segment = pattern.segments[0];
    return matchesName(segment, path.slice(path.lastIndexOf('/') + 1));
  }
  return matchesAll(pattern.segments, path.split('/'), isDoubleStar, matchesName);
}

type Segment = readonly Part[];

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'one' }
  | { readonly kind: 'any' }
  | { readonly kind: 'set'; readonly isNegated: boolean; readonly ranges: readonly Range[] };

type Range = readonly [first: number, last: number];

/** Spaces at the end do not count, unless escaped. */
function trimEnd(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === ' ' && !isEscaped(line, end - 1)) end -= 1;
  return line.slice(0, end);
}

function isEscaped(line: string, at: number): boolean {
  let slashes = 0;
  while (line[at - slashes - 1] === '\\') slashes += 1;
  return slashes % 2 === 1;
}

/** Characters, with a star as one part. `undefined` where the pattern is broken, and so matches nothing. */
function parseSegment(text: string): Segment | undefined {
  const characters = [...text];
  const parts: Part[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? '';
    if (character === '*') {
      if (parts.at(-1)?.kind !== 'any') parts.push({ kind: 'any' });
    } else if (character === '?') {
      parts.push({ kind: 'one' });
    } else if (character === '[') {
      const set = parseSet(characters, at + 1);
      if (set === undefined) return undefined;
      parts.push(set.part);
      at = set.end;
    } else if (character === '\\') {
      at += 1;
      const escaped = characters[at];
      if (escaped === undefined) return undefined;
      parts.push({ kind: 'text', text: escaped });
    } else {
      parts.push({ kind: 'text', text: character });
    }
  }
  return parts;
}

/** From behind the `[`; `end` is where its `]` is. */
function parseSet(
  characters: readonly string[],
  begin: number,
): { part: Part; end: number } | undefined {
  let at = begin;
  const isNegated = characters[at] === '!' || characters[at] === '^';
  if (isNegated) at += 1;
  const ranges: Range[] = [];
  for (let isFirst = true; ; isFirst = false) {
    if (characters[at] === undefined) return undefined;
    if (characters[at] === ']' && !isFirst) break;
    if (characters[at] === '[' && characters[at + 1] === ':') {
      const close = characters.indexOf(']', at + 2);
      if (close === -1) return undefined;
      if (characters[close - 1] === ':' && close - 1 > at + 1) {
        const known = CLASSES.get(characters.slice(at + 2, close - 1).join(''));
        if (known === undefined) return undefined;
        ranges.push(...known);
        at = close + 1;
        continue;
      }
    }
    const first = readMember(characters, at);
    if (first === undefined) return undefined;
    at = first.next;
    if (characters[at] === '-' && characters[at + 1] !== ']' && characters[at + 1] !== undefined) {
      const last = readMember(characters, at + 1);
      if (last === undefined) return undefined;
      ranges.push([first.code, last.code]);
      at = last.next;
    } else {
      ranges.push([first.code, first.code]);
    }
  }
  return { part: { kind: 'set', isNegated, ranges }, end: at };
}

function readMember(
  characters: readonly string[],
  at: number,
): { code: number; next: number } | undefined {
  const isEscape = characters[at] === '\\';
  const code = characters[isEscape ? at + 1 : at]?.codePointAt(0);
  return code === undefined ? undefined : { code, next: at + (isEscape ? 2 : 1) };
}

function matchesSegment(segment: Segment, name: string): boolean {
  return matchesAll(segment, [...name], isStar, matchesCharacter);
}

function matchesName(segment: Segment | '**' | undefined, name: string): boolean {
  return segment !== undefined && segment !== '**' && matchesSegment(segment, name);
}

function isDoubleStar(segment: Segment | '**'): boolean {
  return segment === '**';
}

function isStar(part: Part): boolean {
  return part.kind === 'any';
}

function matchesCharacter(part: Part, character: string): boolean {
  switch (part.kind) {
    case 'text':
      return part.text === character;
    case 'set': {
      const code = character.codePointAt(0) ?? 0;
      return part.ranges.some(([first, last]) => first <= code && code <= last) !== part.isNegated;
    }
    case 'one':
    case 'any':
      return true;
  }
}

/** A sequence against a pattern in which some parts stand for any number of items. */
function matchesAll<P extends object | string, T extends string>(
  pattern: readonly P[],
  items: readonly T[],
  isAny: (part: P) => boolean,
  matches: (part: P, item: T) => boolean,
): boolean {
  let at = 0;
  let next = 0;
  /** Where to go on when the last star has to take one item more: earlier ones never need to. */
  let star = -1;
  let taken = 0;
  for (let item = items[at]; item !== undefined; item = items[at]) {
    const part = pattern[next];
    if (part !== undefined && isAny(part)) {
      star = next;
      taken = at;
      next += 1;
    } else if (part !== undefined && matches(part, item)) {
      next += 1;
      at += 1;
    } else if (star !== -1) {
      taken += 1;
      at = taken;
      next = star + 1;
    } else {
      return false;
    }
  }
  return pattern.slice(next).every(isAny);
}

const LOWER: Range = [0x61, 0x7a];
const UPPER: Range = [0x41, 0x5a];
const DIGIT: Range = [0x30, 0x39];

/** As in the C locale. */
const CLASSES: ReadonlyMap<string, readonly Range[]> = new Map<string, readonly Range[]>([
  ['alnum', [LOWER, UPPER, DIGIT]],
  ['alpha', [LOWER, UPPER]],
  [
    'blank',
    [
      [0x20, 0x20],
      [0x09, 0x09],
    ],
  ],
  [
    'cntrl',
    [
      [0x00, 0x1f],
      [0x7f, 0x7f],
    ],
  ],
  ['digit', [DIGIT]],
  ['graph', [[0x21, 0x7e]]],
  ['lower', [LOWER]],
  ['print', [[0x20, 0x7e]]],
  [
    'punct',
    [
      [0x21, 0x2f],
      [0x3a, 0x40],
      [0x5b, 0x60],
      [0x7b, 0x7e],
    ],
  ],
  [
    'space',
    [
      [0x09, 0x0d],
      [0x20, 0x20],
    ],
  ],
  ['upper', [UPPER]],
  ['xdigit', [DIGIT, [0x61, 0x66], [0x41, 0x46]]],
]);
