/** What each client has typed into one shell, by offset: a key sent again after a cut is applied once. No I/O, no clock. */
import { type Accepted, Inbox } from '../../../stream/inbox.js';

/** Clients a shell remembers; the one that was away longest is forgotten first. */
export const CLIENTS_MAX = 256;

export class Inputs {
  readonly #inboxes = new Map<string, Inbox>();

  /**
   * The client is here (again). `resendFrom` is the first byte it can still send: of one that was forgotten, nothing before that can
   * ever come. Returns the offset from which it is to send.
   */
  join(client: string, resendFrom: number): number {
    const known = this.#inboxes.get(client);
    const inbox = known !== undefined && known.next >= resendFrom ? known : new Inbox(resendFrom);
    // To the end of the line of those who may be forgotten.
    this.#inboxes.delete(client);
    this.#inboxes.set(client, inbox);
    for (const oldest of this.#inboxes.keys()) {
      if (this.#inboxes.size <= CLIENTS_MAX) break;
      this.#inboxes.delete(oldest);
    }
    return inbox.next;
  }

  /** The fresh bytes of a chunk, or that something is missing before it. */
  accept(client: string, offset: number, bytes: Uint8Array): Accepted {
    let inbox = this.#inboxes.get(client);
    if (inbox === undefined) {
      this.join(client, offset);
      inbox = this.#inboxes.get(client) ?? new Inbox(offset);
    }
    return inbox.accept(offset, bytes);
  }

  /** Everything before it was applied. */
  nextOf(client: string): number {
    return this.#inboxes.get(client)?.next ?? 0;
  }
}
