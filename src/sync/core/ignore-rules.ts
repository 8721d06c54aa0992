/**
 * What is left out of a tree: patterns of the command line, then `.ailsdignore`, then `.gitignore`, of each the deepest file
 * and in it the last line that matches. What is inside an ignored folder is ignored, whatever the rules say of it.
 */
import { type IgnorePattern, matchesPattern, parseIgnorePattern } from './ignore-pattern.js';

/** Of one ignore file; what is longer is refused as a whole, since half of one would let the rest through. */
export const IGNORE_FILE_MAX_CHARS = 256 * 1024;

export interface IgnoreOptions {
  /** As lines of a `.gitignore` at the root. */
  readonly patterns?: readonly string[];
  /** Takes `.git` folders along, but never their hooks and settings, which are programs to run. */
  readonly includeGit?: boolean;
}

/** The texts of the ignore files in a folder, where it has them. */
export interface IgnoreFiles {
  readonly ailsdignore?: string;
  readonly gitignore?: string;
}

/** The rules as they hold inside one folder. Never changes: those of a folder below are made by `enter`. */
export class IgnoreRules {
  readonly #sources: readonly Source[];
  readonly #git: GitPlace;

  private constructor(sources: readonly Source[], git: GitPlace) {
    this.#sources = sources;
    this.#git = git;
  }

  static create(options: IgnoreOptions, files: IgnoreFiles): IgnoreRules {
    const patterns = parseIgnoreText((options.patterns ?? []).join('\n'));
    const sources = patterns.length === 0 ? [] : [{ rank: 0, patterns, prefix: '' }];
    const git = options.includeGit === true ? 'outside' : 'unwanted';
    return new IgnoreRules(withFiles(sources, files), git);
  }

  /** The rules inside a folder that is not ignored itself. */
  enter(name: string, files: IgnoreFiles): IgnoreRules {
    const inside = this.#sources.map((source) => ({
      ...source,
      prefix: `${source.prefix}${name}/`,
    }));
    return new IgnoreRules(withFiles(inside, files), enterGit(this.#git, name));
  }

  ignores(name: string, isFolder: boolean): boolean {
    if (isGuarded(this.#git, name, isFolder)) return true;
    for (const { patterns, prefix } of this.#sources) {
      const path = prefix + name;
      for (let at = patterns.length - 1; at >= 0; at--) {
        const pattern = patterns[at];
        if (pattern !== undefined && matchesPattern(pattern, path, isFolder)) {
          return !pattern.isNegated;
        }
      }
    }
    return false;
  }
}

/** The lines of an ignore file. Throws a RangeError where it is too long: ask its length first. */
function parseIgnoreText(text: string): IgnorePattern[] {
  if (text.length > IGNORE_FILE_MAX_CHARS) {
    throw new RangeError(`an ignore file has more than ${IGNORE_FILE_MAX_CHARS} characters`);
  }
  return text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .flatMap((line) => parseIgnorePattern(line) ?? []);
}

interface Source {
  /** The lower is asked first; of the same, the deeper one. */
  readonly rank: number;
  readonly patterns: readonly IgnorePattern[];
  /** From the folder the patterns were written in to the one the rules are for; ends with `/` where it is not empty. */
  readonly prefix: string;
}

function withFiles(sources: readonly Source[], files: IgnoreFiles): Source[] {
  const all = [...sources];
  for (const [rank, text] of [
    [1, files.ailsdignore],
    [2, files.gitignore],
  ] as const) {
    const patterns = text === undefined ? [] : parseIgnoreText(text);
    if (patterns.length === 0) continue;
    const before = all.findIndex((source) => source.rank >= rank);
    all.splice(before === -1 ? all.length : before, 0, { rank, patterns, prefix: '' });
  }
  return all;
}

/** Where the rules are, as regards repositories: `unwanted` where none is taken along at all. */
type GitPlace = 'unwanted' | 'outside' | 'git' | 'submodules' | 'worktrees' | 'worktree' | 'within';

function enterGit(place: GitPlace, name: string): GitPlace {
  switch (place) {
    case 'unwanted':
      return 'unwanted';
    case 'outside':
      return isGitName(name) ? 'git' : 'outside';
    case 'git': {
      const plain = plainName(name);
      if (plain === 'modules') return 'submodules';
      return plain === 'worktrees' ? 'worktrees' : 'within';
    }
    case 'worktrees':
      return 'worktree';
    case 'submodules':
    case 'worktree':
    case 'within':
      return place;
  }
}

function isGuarded(place: GitPlace, name: string, isFolder: boolean): boolean {
  switch (place) {
    case 'unwanted':
      return isGitName(name);
    case 'outside':
      // A file or link of that name leads git to a folder of somebody else's choice.
      return isGitName(name) && !isFolder;
    case 'git':
    case 'submodules':
    case 'worktree':
      // Submodules have names of any depth: what is called so below them is guarded wherever it is.
      return GIT_PROGRAMS.has(plainName(name));
    case 'worktrees':
    case 'within':
      return false;
  }
}

/** What of a repository makes git run programs, or look elsewhere for what does. */
const GIT_PROGRAMS: ReadonlySet<string> = new Set([
  'hooks',
  'hooks~1',
  'config',
  'config~1',
  'config.worktree',
  'config~2',
  'commondir',
  'gitdir',
]);

/** `.git` under any spelling that some file system takes for it. */
function isGitName(name: string): boolean {
  const plain = plainName(name);
  return plain === '.git' || plain === 'git~1';
}

/** As NTFS and HFS+ read names: without case, dots and spaces at the end, streams, and characters that are not seen. */
function plainName(name: string): string {
  return name
    .replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '')
    .replace(/:.*$/s, '')
    .replace(/[. ]+$/, '')
    .toLowerCase();
}
