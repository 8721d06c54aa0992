/** A map that holds no more than it may: what was not asked for the longest makes room. */
export class RecentMap<K, V> {
  readonly #max: number;
  readonly #entries = new Map<K, V>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K, make: (key: K) => V): V {
    const found = this.#entries.get(key);
    if (found !== undefined) {
      // A Map keeps the order of insertion: the first key is the one to go.
      this.#entries.delete(key);
      this.#entries.set(key, found);
      return found;
    }
    const made = make(key);
    this.#entries.set(key, made);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#max) break;
      this.#entries.delete(oldest);
    }
    return made;
  }

  clear(): void {
    this.#entries.clear();
  }
}
