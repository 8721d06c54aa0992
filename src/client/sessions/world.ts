/** What getting hold of a sandbox needs from outside, besides what a login needs. */
import type { AuthWorld } from '../auth/world.js';

export interface SessionWorld extends AuthWorld {
  /** Where it is kept which sandbox a thread had; absent where there is no home, and then nothing is kept. */
  readonly cacheFolder: string | undefined;
  /** Access that was negotiated elsewhere (S2 phase 0). Where it is given, no server is asked. */
  readonly givenAccess: () => GivenAccess | undefined;
  /** In [0, 1), as `Math.random`. */
  readonly random: () => number;
  /** What happens, for whoever debugs. Never told a token. */
  readonly trace: (text: string) => void;
}

export interface GivenAccess {
  /** S2's JSON, bare or inside a run's configuration. */
  readonly text: string;
  /** Where it came from, for people: a variable, an option, a file. */
  readonly from: string;
}
