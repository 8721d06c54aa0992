/**
 * Takes secrets out of a stream of text, also where a piece ends in the midst of one: what looks like a token, and what is
 * known to be a secret. No I/O. What was written in another encoding, or with something in between, is not found.
 */

/** JWTs, our own opaque tokens and client secrets, and the well-known shapes of others. */
const SHAPES = [
  'eyJ[\\w-]{10,}\\.[\\w-]{10,}\\.[\\w-]{10,}',
  'ailsd_[a-z]+_[\\w-]{20,}',
  '(?<![A-Za-z0-9])gh[oprsu]_[A-Za-z0-9]{36,}',
  '(?<![A-Za-z0-9])github_pat_\\w{22,}',
  '(?<![A-Za-z0-9])glpat-[\\w-]{20,}',
  '(?<![A-Za-z0-9])xox[abeoprs]-[\\w-]{20,}',
  '(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}(?![A-Za-z0-9])',
];
/** What each may begin with; from there on it may go on in the next piece. */
const BEGINNINGS = [
  { begins: 'eyJ', goesOn: '[\\w.-]*' },
  { begins: 'ailsd_', goesOn: '[\\w-]*' },
  ...['gho_', 'ghp_', 'ghr_', 'ghs_', 'ghu_'].map((begins) => ({ begins, goesOn: '\\w*' })),
  { begins: 'github_pat_', goesOn: '\\w*' },
  { begins: 'glpat-', goesOn: '[\\w-]*' },
  { begins: 'xox', goesOn: '[\\w-]*' },
  { begins: 'AKIA', goesOn: '\\w*' },
];
const TAIL = new RegExp(`(?:${BEGINNINGS.map(tailOf).join('|')})$`);
/** A longer run of such characters is no token, and is not waited for. */
const TAIL_MAX_CHARS = 16 * 1024;
const SHOWN = '[secret]';
/** Anything shorter would be found in ordinary words. */
const SECRET_MIN_CHARS = 8;

export class TokenRedactor {
  readonly #secrets: readonly string[];
  readonly #found: RegExp;
  #kept = '';
  /** The last that was given out: whether a token begins where it seems to may depend on it. */
  #before = '';

  /** `secrets`: texts that must not appear, whatever they look like. */
  constructor(secrets: readonly string[] = []) {
    this.#secrets = [...new Set(secrets)].filter(({ length }) => length >= SECRET_MIN_CHARS);
    // The longest first: one may begin with another.
    const known = [...this.#secrets].sort((a, b) => b.length - a.length).map(escapeRegExp);
    this.#found = new RegExp([...known, ...SHAPES].join('|'), 'g');
  }

  /** What may be written now; some may be kept back until more is seen. */
  push(text: string): string {
    const all = this.#kept + text;
    const { shown, end } = this.#redact(all, this.#tailAt(all));
    this.#kept = all.slice(end);
    return shown;
  }

  /** What was kept back. */
  end(): string {
    const { shown } = this.#redact(this.#kept, this.#kept.length);
    this.#kept = '';
    return shown;
  }

  /** Where the first thing begins that may go on in the next piece. */
  #tailAt(all: string): number {
    const from = Math.max(0, all.length - TAIL_MAX_CHARS);
    let at = all.length - (TAIL.exec(all.slice(from))?.[0].length ?? 0);
    for (const secret of this.#secrets) {
      for (let length = Math.min(secret.length - 1, all.length); length > all.length - at; length--)
        if (all.endsWith(secret.slice(0, length))) at = all.length - length;
    }
    return at;
  }

  /** All that begins before `until`; a secret that begins there and ends behind it is taken out whole. */
  #redact(all: string, until: number): { readonly shown: string; readonly end: number } {
    const context = this.#before.length;
    const text = this.#before + all;
    let shown = '';
    let end = context;
    this.#found.lastIndex = context;
    for (let match = this.#found.exec(text); match !== null; match = this.#found.exec(text)) {
      if (match.index >= until + context) break;
      shown += text.slice(end, match.index) + SHOWN;
      end = match.index + match[0].length;
    }
    const cut = Math.max(end, until + context);
    shown += text.slice(end, cut);
    if (cut > context) this.#before = text.slice(cut - 1, cut);
    return { shown, end: cut - context };
  }
}

/** The beginning and what follows it, or a part of the beginning alone. */
function tailOf({ begins, goesOn }: (typeof BEGINNINGS)[number]): string {
  const parts = Array.from({ length: begins.length - 1 }, (_, at) =>
    escapeRegExp(begins.slice(0, begins.length - 1 - at)),
  );
  return [`${escapeRegExp(begins)}${goesOn}`, ...parts].join('|');
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
