/** One direction of one connection in a story: keeps order, may repeat a frame, and after a cut loses its tail or is late. */
export class Line<T> {
  #frames: T[] = [];

  get frames(): readonly T[] {
    return this.#frames;
  }

  send(frame: T): void {
    this.#frames.push(frame);
  }

  /** The next frame to arrive. */
  arrive(): T | undefined {
    return this.#frames.shift();
  }

  /** The next frame will arrive twice. */
  repeat(): void {
    const [next] = this.#frames;
    if (next !== undefined) this.#frames.unshift(next);
  }

  /** The connection is gone. The first frames were already out and may arrive at any later time; the rest is lost. */
  cut(survivors: number): void {
    this.#frames = this.#frames.slice(0, survivors);
  }
}
