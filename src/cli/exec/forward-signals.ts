/** Signals that come to us go to the command; the second of a kind is for us. */
import type { SignalName } from '../../client/exec/running-command.js';
import type { Signals } from '../signals.js';

export interface SignalTarget {
  /** Whether there is, or may be, a command to be told. */
  readonly mayRun: boolean;
  signal(name: SignalName): void;
}

/** Those that mean nothing to us. SIGUSR1 would make Node open its debugger. */
const OTHERS = ['SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const satisfies readonly SignalName[];

export function forwardSignals(signals: Signals, target: SignalTarget): Disposable {
  const seen = new Set<string>();
  const diversion = signals.divert((name) => {
    if (!target.mayRun || seen.has(name)) return false;
    seen.add(name);
    target.signal(name);
    return true;
  });
  const listeners = OTHERS.map((name) => [name, () => target.signal(name)] as const);
  for (const [name, listener] of listeners) process.on(name, listener);
  return {
    [Symbol.dispose]: () => {
      diversion[Symbol.dispose]();
      for (const [name, listener] of listeners) process.off(name, listener);
    },
  };
}
