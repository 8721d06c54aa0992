/** Text that must not be shown: it prints as `[secret]` however it is printed. Memory dumps still hold it. */
const PRINTED = '[secret]';

/** Where `util.inspect`, and so `console.log`, asks an object how it wants to look. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

export class Secret {
  /** A private field: invisible to inspection, spreading, cloning and serialisers. */
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The text itself, for the one place that sends or hashes it. */
  reveal(): string {
    return this.#value;
  }

  /** Takes as long for a near miss as for a far one; only the other's length can be told from the time. */
  equals(other: Secret): boolean {
    const mine = this.#value;
    const theirs = other.#value;
    let difference = mine.length ^ theirs.length;
    // Past its end `charCodeAt` is NaN, which counts as 0 here; the lengths have told by then.
    for (let at = 0; at < theirs.length; at++) {
      difference |= mine.charCodeAt(at) ^ theirs.charCodeAt(at);
    }
    return difference === 0;
  }

  toString(): string {
    return PRINTED;
  }

  toJSON(): string {
    return PRINTED;
  }

  [INSPECT](): string {
    return PRINTED;
  }
}
