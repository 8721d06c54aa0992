/** Ctrl-C and its kin: the first asks everything to stop and clean up, the second ends at once. */

/** How long cleaning up may take before the process ends without it. */
const CLEAN_UP_MS = 5_000;

const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
export type Caught = keyof typeof NUMBERS;

/** Listens from its first use: a command that has nothing to clean up leaves signals to their default. */
export class Signals {
  #controller: AbortController | undefined;
  #caught: Caught | undefined;
  #diversion: ((name: Caught) => boolean) | undefined;

  /** Aborted when the user or the system wants us to end. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
        process.on(name, () => this.#take(name));
    }
    return this.#controller.signal;
  }

  /** 128 + n once a signal came, whatever the command then returned. */
  get exitCode(): number | undefined {
    return this.#caught === undefined ? undefined : 128 + NUMBERS[this.#caught];
  }

  /** Until it is disposed of, each comes to `take` first, for a program elsewhere; what it does not take is ours as ever. */
  divert(take: (name: Caught) => boolean): Disposable {
    this.#diversion = take;
    return {
      [Symbol.dispose]: () => {
        this.#diversion = undefined;
      },
    };
  }

  #take(name: Caught): void {
    if (this.#caught === undefined && this.#diversion?.(name) === true) return;
    const code = 128 + NUMBERS[name];
    if (this.#caught !== undefined) process.exit(code);
    this.#caught = name;
    setTimeout(() => process.exit(code), CLEAN_UP_MS).unref();
    this.#controller?.abort(new Error(`ended by ${name}`));
  }
}
