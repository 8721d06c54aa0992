/** WebSockets that have not said who they are: so many, so many of one address, and so long. */
import { AilsdError } from '../../../protocol/errors.js';
import { AUTH_SECONDS, UNAUTHENTICATED_CONNECTIONS } from '../../../protocol/routes/dataplane.js';

export class Waiting {
  readonly #perAddress = new Map<string, number>();
  #total = 0;

  /** Says when they have said it, or gone. RATE_LIMITED would be their fault: BACKEND_UNAVAILABLE with `Retry-After`. */
  admit(address: string): () => void {
    const held = this.#perAddress.get(address) ?? 0;
    const { total, perAddress } = UNAUTHENTICATED_CONNECTIONS;
    if (this.#total >= total || held >= perAddress)
      throw new AilsdError('BACKEND_UNAVAILABLE', 'too many connections wait to say who they are', {
        details: { retry_after_ms: AUTH_SECONDS * 1_000 },
      });
    this.#total += 1;
    this.#perAddress.set(address, held + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#total -= 1;
      const left = (this.#perAddress.get(address) ?? 1) - 1;
      if (left > 0) this.#perAddress.set(address, left);
      else this.#perAddress.delete(address);
    };
  }
}
