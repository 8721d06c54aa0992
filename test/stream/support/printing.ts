/** A shell and its screen: a ring and a send window there, an inbox and a receive window here. */
import { Inbox } from '../../../src/stream/inbox.js';
import { Ring } from '../../../src/stream/ring.js';
import { ReceiveWindow, SendWindow } from '../../../src/stream/window.js';
import { sourceBytes } from './source.js';
import { type Connection, check, Story } from './story.js';

type Shown =
  | { readonly type: 'chunk'; readonly offset: number; readonly bytes: Uint8Array }
  /** A snapshot of the screen as it is at this offset. */
  | { readonly type: 'snapshot'; readonly offset: number };

interface Told {
  readonly type: 'resume' | 'ack';
  readonly offset: number;
}

export interface PrintingSizes {
  readonly ringBytes: number;
  readonly windowBytes: number;
  readonly ackEveryBytes: number;
}

export class Printing extends Story<Shown, Told> {
  readonly #sizes: PrintingSizes;
  readonly #ring: Ring;
  readonly #sendWindow: SendWindow;
  readonly #receiveWindow: ReceiveWindow;
  #inbox = new Inbox();
  #nowMs = 0;
  snapshots = 0;

  constructor(sizes: PrintingSizes) {
    super();
    this.#sizes = sizes;
    this.#ring = new Ring(sizes.ringBytes);
    this.#sendWindow = new SendWindow(sizes.windowBytes);
    this.#receiveWindow = new ReceiveWindow({ ackEveryBytes: sizes.ackEveryBytes, maxDelayMs: 5 });
  }

  /** The program runs on whoever looks: the ring always takes. */
  protected override write(bytes: number): void {
    this.#ring.append(sourceBytes(this.written, this.written + bytes));
    this.written += bytes;
  }

  protected override greet(on: Connection<Shown, Told>): void {
    on.back.send({ type: 'resume', offset: this.#inbox.next });
  }

  protected override send(bytes: number, on: Connection<Shown, Told>): void {
    const { sent, available } = this.#sendWindow;
    const read = this.#ring.read(sent, Math.min(bytes, available));
    check(read.kind !== 'ahead', 'more was sent than printed');
    if (read.kind === 'bytes') {
      check(this.#sendWindow.send(read.bytes.length) === 'sent', 'available, yet blocked');
      on.forth.send({ type: 'chunk', offset: read.offset, bytes: read.bytes });
    } else if (read.kind === 'gone') {
      this.#sendWindow.restart(this.#ring.end);
      on.forth.send({ type: 'snapshot', offset: this.#ring.end });
    }
  }

  /** A millisecond goes by; whether that makes an ack due is the window's to say. */
  protected override ack(on: Connection<Shown, Told>): void {
    this.#nowMs += 1;
    if (!this.#receiveWindow.isDue(this.#nowMs)) return;
    on.back.send({ type: 'ack', offset: this.#receiveWindow.take() });
  }

  protected override arrived(frame: Shown, on: Connection<Shown, Told>): void {
    // The reader has left older connections.
    if (on !== this.current) return;
    if (frame.type === 'chunk') {
      const accepted = this.#inbox.accept(frame.offset, frame.bytes);
      if (accepted.kind === 'fresh') this.deliver(accepted.bytes);
      else check(false, 'a gap nobody told of');
    } else if (frame.offset > this.delivered) {
      this.#inbox = new Inbox(frame.offset);
      this.delivered = frame.offset;
      this.snapshots += 1;
    }
    this.#receiveWindow.consume(this.#inbox.next, this.#nowMs);
  }

  protected override arrivedBack(told: Told, on: Connection<Shown, Told>): void {
    if (on !== this.current) return;
    if (told.type === 'resume') {
      on.isGreeted = true;
      this.#sendWindow.restart(told.offset);
    } else {
      // `stale` when a snapshot is under way: the ack is for bytes before it.
      check(this.#sendWindow.ack(told.offset).kind !== 'ahead', 'an ack for what was not sent');
    }
  }

  protected override checkBounds(): void {
    const { sent, acked, available, isBlocked } = this.#sendWindow;
    const { ringBytes, windowBytes } = this.#sizes;
    check(available === windowBytes - (sent - acked) && available >= 0, 'more is out than may be');
    check(isBlocked === (available === 0), 'blocked and available disagree');
    check(this.#ring.end - this.#ring.start <= ringBytes, 'the ring holds more than it may');
    check(this.#ring.allocatedBytes <= ringBytes, 'the ring takes more memory than it may');
  }
}
