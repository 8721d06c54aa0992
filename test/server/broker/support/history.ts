/** What clients asked and were answered, in order of time, and what in it can't have happened in a right world. */

export interface Observed {
  readonly thread: string;
  readonly op: 'ensure' | 'get' | 'heartbeat' | 'refresh' | 'release';
  readonly beginMs: number;
  readonly endMs: number;
  /** 0: the line was cut, and nobody knows what became of it. */
  readonly status: number;
  /** Of the answer, or of the request where that named one. */
  readonly session?: string | undefined;
  readonly sandbox?: string | undefined;
}

/** One sentence for each; none in a right world. */
export function anomalies(history: readonly Observed[]): readonly string[] {
  const found: string[] = [];
  const places = new Map<string, { readonly thread: string; readonly sandbox: string }>();
  for (const one of history) {
    if (one.status >= 500 && one.status !== 503) found.push(`${one.op} answered ${one.status}`);
    if (one.status !== 200 || one.session === undefined) continue;
    if (one.op !== 'ensure' && one.op !== 'get') continue;
    const { thread, session, sandbox = '' } = one;
    const known = places.get(session) ?? { thread, sandbox };
    places.set(session, known);
    if (known.thread !== thread || known.sandbox !== sandbox)
      found.push(`${session} was in two places: ${JSON.stringify([known, one])}`);
  }
  for (const session of places.keys()) found.push(...anomaliesOf(session, history));
  return [...found, ...replacements(history)];
}

function anomaliesOf(session: string, history: readonly Observed[]): readonly string[] {
  const own = history.filter((one) => one.session === session);
  const releases = own.filter(({ op }) => op === 'release');
  const released = releases.filter(({ status }) => status === 204);
  const found: string[] = [];
  if (released.length > 1) found.push(`${session} was released twice`);
  const goneMs = released[0]?.endMs ?? Number.POSITIVE_INFINITY;
  for (const one of own) {
    if (one.status === 200 && one.beginMs > goneMs)
      found.push(`${session} answered ${one.op} after its release`);
    // A release that was asked for, answered or not, is the only thing that ends one here.
    const wasAsked = releases.some(({ beginMs }) => beginMs < one.endMs);
    if ((one.status === 404 || one.status === 410) && !wasAsked)
      found.push(`${session} was lost: ${one.op} answered ${one.status}`);
  }
  return found;
}

/** Once a thread's session was seen replaced by another, it does not come back. */
function replacements(history: readonly Observed[]): readonly string[] {
  const found: string[] = [];
  const threads = new Set(history.map(({ thread }) => thread));
  for (const thread of threads) {
    const answers = history
      .filter((one) => one.thread === thread && one.status === 200 && one.session !== undefined)
      .filter(({ op }) => op === 'ensure' || op === 'get')
      .sort((a, b) => a.endMs - b.endMs);
    const firstEnd = new Map<string, number>();
    const lastBegin = new Map<string, number>();
    for (const { session = '', beginMs, endMs } of answers) {
      firstEnd.set(session, Math.min(firstEnd.get(session) ?? endMs, endMs));
      lastBegin.set(session, Math.max(lastBegin.get(session) ?? beginMs, beginMs));
    }
    for (const { session: other = '', beginMs, endMs } of answers) {
      for (const [session, end] of firstEnd) {
        const isBetween = end < beginMs && endMs < (lastBegin.get(session) ?? 0);
        if (session !== other && isBetween)
          found.push(`${thread}: ${other} stood between two answers of ${session}`);
      }
    }
  }
  return found;
}

/** The same numbers for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
