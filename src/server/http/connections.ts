/** Counts open connections, and turns away an address that holds too many. */
import type { Socket } from 'node:net';
import type { TrustedProxies } from './forwarded.js';

export class Connections {
  readonly #open = new Set<Socket>();
  readonly #perAddress = new Map<string, number>();
  readonly #limit: number;
  readonly #proxies: TrustedProxies;

  constructor(limit: number, proxies: TrustedProxies) {
    this.#limit = limit;
    this.#proxies = proxies;
  }

  /** Keeps the connection, or answers and ends it. */
  admit(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const held = this.#perAddress.get(address) ?? 0;
    if (held >= this.#limit && !this.#proxies.trusts(address)) {
      // Nobody waits for it to be read.
      socket.on('error', () => {});
      socket.end(TOO_MANY);
      socket.destroySoon();
      return;
    }
    this.#open.add(socket);
    this.#perAddress.set(address, held + 1);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#release(address);
    });
  }

  /** Ends those on which nothing is being answered; also one that never asked, which to Node is not idle. */
  closeAllBut(busy: ReadonlySet<Socket>): void {
    for (const socket of this.#open) if (!busy.has(socket)) socket.destroy();
  }

  #release(address: string): void {
    const held = (this.#perAddress.get(address) ?? 1) - 1;
    if (held > 0) this.#perAddress.set(address, held);
    else this.#perAddress.delete(address);
  }
}

const TOO_MANY =
  'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
