/** Sleeps by the clock that people set, in pieces: neither a machine that slept nor a clock that was put right is missed. */
import type { Clock } from '../../base/clock.js';

const LONGEST_PIECE_MS = 15_000;

export async function sleepUntil(clock: Clock, atMs: number, signal: AbortSignal): Promise<void> {
  for (let left = atMs - clock.now(); left > 0; left = atMs - clock.now()) {
    await clock.sleep(Math.min(left, LONGEST_PIECE_MS), signal);
  }
}
