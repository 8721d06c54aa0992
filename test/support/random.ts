/** Numbers that look random and are the same for the same seed. */

/** In [0, 1), as `Math.random`: mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A seed of the day, or the one that is being looked into. */
export function newSeed(): number {
  return Number(process.env['AILSD_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
}
