/**
 * The first thing that runs in a session: a word that looks like a secret, printed by the interpreter that is wanted. Only
 * where it comes back taken out is the redactor on, the interpreter there and the output whole; else no code of a caller runs.
 */
import { AilsdError } from '../../../protocol/errors.js';
import type { RandomFill } from '../../../protocol/ids.js';
import type { CommandEnd } from './command.js';
import { INTERPRETERS, type Language } from './languages.js';

export interface ProbeResult {
  readonly end: CommandEnd;
  readonly shown: string;
}

/** Runs code as a caller's would be, through the same redactor. */
export type RunProbe = (code: string) => Promise<ProbeResult>;

const SHOWN = '[secret]';

export async function proveReady(
  language: Language,
  random: RandomFill,
  run: RunProbe,
): Promise<void> {
  const word = Buffer.from(random(new Uint8Array(32))).toString('hex');
  // In two writes: a redactor that looks at each alone would let it pass.
  const [first, second] = ['ailsd_canary_', word] as const;
  const { end, shown } = await run(INTERPRETERS[language].print(first, second));
  if (end.exitCode === 127) throw notReady(`the sandbox has nothing to run ${language} with`);
  if (end.exitCode !== 0) throw notReady(`the ${language} interpreter does not work`);
  if (end.stdoutBytes !== first.length + second.length)
    throw notReady('the sandbox does not give output back as it was written');
  if (shown !== SHOWN) throw notReady('the redactor is not on');
}

function notReady(message: string): AilsdError {
  return new AilsdError('PROVIDER_UNAVAILABLE', message);
}

/** Which sessions were found ready, for as long as they are the same: a bounded memory, since asking again does no harm. */
export class ReadySessions {
  readonly #ready = new Map<string, true>();

  has(key: string): boolean {
    return this.#ready.has(key);
  }

  add(key: string): void {
    this.#ready.delete(key);
    this.#ready.set(key, true);
    for (const old of this.#ready.keys()) {
      if (this.#ready.size <= MOST_REMEMBERED) return;
      this.#ready.delete(old);
    }
  }
}

const MOST_REMEMBERED = 10_000;
