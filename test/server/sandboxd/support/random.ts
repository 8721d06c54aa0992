/** Randomness that can be had again: a failing test prints its seed, and `AILSD_SEED` brings it back. */
export interface Random {
  readonly seed: number;
  /** In [0, 1). */
  next(): number;
  below(bound: number): number;
  bytes(length: number): Buffer;
}

/** Mulberry32. */
export function seededRandom(
  seed = Number(process.env['AILSD_SEED'] ?? Date.now() % 2 ** 31),
): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    seed,
    next,
    below: (bound) => Math.floor(next() * bound),
    bytes: (length) => {
      const bytes = Buffer.alloc(length);
      for (let at = 0; at < length; at++) bytes[at] = next() * 256;
      return bytes;
    },
  };
}

export const SOAK = process.env['AILSD_SOAK'] === '1';
