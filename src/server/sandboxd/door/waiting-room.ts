/** Those who have not said who they are: few at a time, few of one address, and none for long. */
import { AilsdError } from '../../../protocol/errors.js';
import { UNAUTHENTICATED_CONNECTIONS } from '../../../protocol/routes/dataplane.js';

export class WaitingRoom {
  readonly #perAddress = new Map<string, number>();
  #total = 0;

  get size(): number {
    return this.#total;
  }

  /** Counts one in, or throws; what it returns is called once, when that one is known or gone. */
  enter(address: string): () => void {
    const held = this.#perAddress.get(address) ?? 0;
    const { total, perAddress } = UNAUTHENTICATED_CONNECTIONS;
    if (this.#total >= total || held >= perAddress)
      throw new AilsdError('BACKEND_UNAVAILABLE', 'too many wait to be let in', {
        details: { retry_after_ms: RETRY_MS },
      });
    this.#total += 1;
    this.#perAddress.set(address, held + 1);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      this.#leave(address);
    };
  }

  #leave(address: string): void {
    this.#total -= 1;
    const left = (this.#perAddress.get(address) ?? 1) - 1;
    if (left > 0) this.#perAddress.set(address, left);
    else this.#perAddress.delete(address);
  }
}

const RETRY_MS = 1_000;
