/** Notices that the machine slept or changed its network: what was known about the line is old then. */
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../base/clock.js';

/** Time that passed on the wall and not for us: more than people correct a clock by. */
const SLEPT_MS = 2_000;

export class Surroundings {
  readonly #clock: Clock;
  readonly #addresses: () => string;
  #ahead: number;
  #network: string;

  constructor(clock: Clock, addresses: () => string = localAddresses) {
    this.#clock = clock;
    this.#addresses = addresses;
    this.#ahead = clock.now() - clock.monotonic();
    this.#network = addresses();
  }

  /** What has changed since the last look. */
  look(): 'same' | 'slept' | 'network' {
    const ahead = this.#clock.now() - this.#clock.monotonic();
    const jumped = Math.abs(ahead - this.#ahead) > SLEPT_MS;
    this.#ahead = ahead;
    const network = this.#addresses();
    const moved = network !== this.#network;
    this.#network = network;
    if (moved) return 'network';
    return jumped ? 'slept' : 'same';
  }
}

/** Every address of this machine that others can see, as one text to compare. */
function localAddresses(): string {
  try {
    const found = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    const seen = found.filter(({ internal }) => !internal).map(({ address }) => address);
    return seen.sort().join(' ');
  } catch {
    // Some sandboxes do not let a program ask.
    return '';
  }
}
