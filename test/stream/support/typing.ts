/** A keyboard and its shell: an outbox here, an inbox there, and no byte may be lost. */
import { Inbox } from '../../../src/stream/inbox.js';
import { Outbox } from '../../../src/stream/outbox.js';
import { sourceBytes } from './source.js';
import { type Connection, check, Story } from './story.js';

interface Chunk {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

interface Told {
  readonly type: 'resume' | 'ack';
  readonly offset: number;
}

export class Typing extends Story<Chunk, Told> {
  readonly #boundBytes: number;
  readonly #outbox: Outbox;
  readonly #inbox = new Inbox();
  /** Offset of the next byte to send on this connection. */
  #sent = 0;
  refused = 0;

  constructor(boundBytes: number) {
    super();
    this.#boundBytes = boundBytes;
    this.#outbox = new Outbox(boundBytes);
  }

  protected override write(bytes: number): void {
    const room = this.#outbox.roomBytes;
    const outcome = this.#outbox.append(sourceBytes(this.written, this.written + bytes));
    check(outcome === (bytes <= room ? 'taken' : 'full'), 'room and outcome disagree');
    if (outcome === 'taken') this.written += bytes;
    else this.refused += 1;
  }

  protected override greet(on: Connection<Chunk, Told>): void {
    on.back.send({ type: 'resume', offset: this.#inbox.next });
  }

  protected override send(bytes: number, on: Connection<Chunk, Told>): void {
    const pending = this.#outbox.pendingFrom(this.#sent, bytes);
    check(pending.kind !== 'ahead', 'more was sent than written');
    if (pending.kind === 'bytes') {
      on.forth.send({ offset: pending.offset, bytes: pending.bytes });
      this.#sent += pending.bytes.length;
    } else if (pending.kind === 'gone') {
      // An ack of an older connection overtook this one: the receiver has what was to be sent.
      this.#sent = pending.start;
    }
  }

  protected override ack(on: Connection<Chunk, Told>): void {
    on.back.send({ type: 'ack', offset: this.#inbox.next });
  }

  protected override arrived(chunk: Chunk, on: Connection<Chunk, Told>): void {
    const accepted = this.#inbox.accept(chunk.offset, chunk.bytes);
    // Within a connection nothing is out of order; of an older one a chunk may be, and is dropped.
    if (accepted.kind === 'fresh') this.deliver(accepted.bytes);
    else check(on !== this.current, 'a gap within a connection');
  }

  protected override arrivedBack(told: Told, on: Connection<Chunk, Told>): void {
    check(this.#outbox.ack(told.offset).kind !== 'ahead', 'more was acknowledged than written');
    if (told.type === 'ack' || on !== this.current) return;
    on.isGreeted = true;
    this.#sent = Math.max(told.offset, this.#outbox.start);
  }

  protected override checkBounds(): void {
    check(this.#outbox.end - this.#outbox.start <= this.#boundBytes, 'more is kept than may be');
    check(this.#outbox.allocatedBytes <= this.#boundBytes, 'more memory is taken than may be');
    check(this.#outbox.start <= this.#inbox.next, 'bytes were let go that have not arrived');
  }
}
