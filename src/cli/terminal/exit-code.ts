/** What `attach` ends with when the program in the sandbox has ended. */
import { constants } from 'node:os';
import type { Outcome } from '../../client/shell/shell-words.js';
import { EXIT } from '../exit-codes.js';

/** The remote code unchanged, 128 + n for signal n; where nobody knows the program's own end, who ended it decides. */
export function exitCodeOf({ origin, exitCode, signal }: Outcome): number {
  if (origin === 'transport') return EXIT.lost;
  if (signal !== undefined) return 128 + signalNumber(signal);
  if (exitCode !== undefined) return exitCode & 0xff;
  return origin === 'remote' ? EXIT.lost : EXIT.notStarted;
}

/** One that this system has no number for is counted as the one that cannot be caught. */
function signalNumber(name: string): number {
  const found = Object.entries(constants.signals).find(([known]) => known === name);
  return found?.[1] ?? constants.signals.SIGKILL;
}
