/** Two WebSockets made one: messages pass as they are, each end at the pace of the other, and both end together. */
import { CLOSES, type Close } from '../../../protocol/closes.js';
import type { Socket, SocketEvents } from '../../http/websocket.js';
import type { RelayLimits } from './http-relay.js';

export interface BridgeParts {
  readonly limits: Pick<RelayLimits, 'bufferedBytes' | 'stallMs'>;
  /** Looks at each text message of the client before it passes; what it returns is sent, `undefined` sends nothing. */
  readonly fromClient: (text: string) => string | undefined | Promise<string | undefined>;
  readonly onBytes?: ((direction: 'to_sandbox' | 'to_client', bytes: number) => void) | undefined;
  readonly onEnd: () => void;
}

export class Bridge {
  readonly #parts: BridgeParts;
  readonly #client: Socket;
  #sandbox: Socket | undefined;
  /** Of the client, while an earlier message is being looked at: they keep their order. */
  #looking: Promise<void> | undefined;
  #isOver = false;
  readonly #stalls = new Map<Socket, NodeJS.Timeout>();

  constructor(client: Socket, parts: BridgeParts) {
    this.#client = client;
    this.#parts = parts;
  }

  readonly clientEvents: SocketEvents = {
    message: (message) => this.#fromClient(message),
    closed: (code, reason) => this.#ended(this.#sandbox, code, reason),
    drained: () => this.#drained(this.#client, this.#sandbox),
  };

  readonly sandboxEvents: SocketEvents = {
    message: (message) => {
      this.#parts.onBytes?.('to_client', message.length);
      this.#pass(message, this.#client, this.#sandbox);
    },
    closed: (code, reason) => this.#ended(this.#client, code, reason),
    drained: () => {
      if (this.#sandbox !== undefined) this.#drained(this.#sandbox, this.#client);
    },
  };

  /** Until then nothing of the client is read. */
  join(sandbox: Socket): void {
    this.#sandbox = sandbox;
    if (this.#isOver) sandbox.cut();
  }

  /** A word of the relay itself. */
  tellClient(text: string): void {
    if (!this.#isOver) this.#client.send(text);
  }

  /** Ours to end: the client is told why, the sandbox hears nothing more. */
  end(close: Close): void {
    if (this.#isOver) return;
    this.#over();
    this.#client.resume();
    this.#client.close(close);
    this.#sandbox?.cut();
  }

  #fromClient(message: string | Uint8Array): void {
    if (this.#isOver) return;
    const { fromClient } = this.#parts;
    const before = this.#looking;
    if (before !== undefined) {
      // Comes after the one that is being looked at; there are few, since the client is not read meanwhile.
      this.#wait(before.then(() => (typeof message === 'string' ? fromClient(message) : message)));
      return;
    }
    const seen = typeof message === 'string' ? fromClient(message) : message;
    if (seen instanceof Promise) this.#wait(seen);
    else if (seen !== undefined) this.#toSandbox(seen);
  }

  #wait(seen: Promise<string | Uint8Array | undefined>): void {
    this.#client.pause();
    const looking = seen
      .then(
        (message) => {
          if (message !== undefined && !this.#isOver) this.#toSandbox(message);
        },
        () => this.end(CLOSES.internal),
      )
      .then(() => {
        if (this.#looking !== looking) return;
        this.#looking = undefined;
        if (this.#sandbox !== undefined) this.#drained(this.#sandbox, this.#client);
      });
    this.#looking = looking;
  }

  #toSandbox(message: string | Uint8Array): void {
    this.#parts.onBytes?.('to_sandbox', message.length);
    if (this.#sandbox !== undefined) this.#pass(message, this.#sandbox, this.#client);
  }

  #pass(message: string | Uint8Array, to: Socket, from: Socket | undefined): void {
    to.send(message);
    if (to.bufferedBytes <= this.#parts.limits.bufferedBytes) return;
    from?.pause();
    if (this.#stalls.has(to)) return;
    const stalled = (): void => {
      to.cut();
      from?.cut();
    };
    this.#stalls.set(to, setTimeout(stalled, this.#parts.limits.stallMs));
  }

  /** `to` has sent something on; whoever feeds it may go on once little enough is left. */
  #drained(to: Socket, from: Socket | undefined): void {
    if (to.bufferedBytes > this.#parts.limits.bufferedBytes / 2) return;
    clearTimeout(this.#stalls.get(to));
    this.#stalls.delete(to);
    if (from !== this.#client || this.#looking === undefined) from?.resume();
  }

  #ended(other: Socket | undefined, code: number, reason: string): void {
    if (this.#isOver) return;
    this.#over();
    if (other === undefined) return;
    // One that is not read would not hear the answer to its close.
    other.resume();
    if (code === CUT && other !== this.#client) other.cut();
    else other.close(toClose(code, reason));
  }

  #over(): void {
    this.#isOver = true;
    for (const timer of this.#stalls.values()) clearTimeout(timer);
    this.#stalls.clear();
    this.#parts.onEnd();
  }
}

const CUT = 1006;
const NO_CODE = 1005;

/** What may be said on the wire, as it was said; a sandbox whose line was cut may be back in a moment. */
function toClose(code: number, reason: string): Close {
  if (code === CUT) return CLOSES.tryLater;
  const isSayable = (code >= 1000 && code <= 1014 && code !== 1004) || code >= 3000;
  if (!isSayable || code === NO_CODE) return CLOSES.done;
  return { code, reason, retry: 'never' };
}
