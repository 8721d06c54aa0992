/** By how much a server's clock is ahead of ours, told by the `Date` of an answer: ends of tokens are in its time. */

/** 0 where it does not say, and where the difference is no more than what rounding and the way here explain. */
export function clockSkewMs(date: string | undefined, nowMs: number): number {
  const serverMs = date === undefined ? Number.NaN : Date.parse(date);
  const skewMs = serverMs - nowMs;
  return Number.isNaN(skewMs) || Math.abs(skewMs) < NOISE_MS ? 0 : skewMs;
}

const NOISE_MS = 2_500;
