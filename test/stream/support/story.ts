/** A stream's life as a list of events: connections come and go, frames of old ones arrive between those of new ones. */
import fc from 'fast-check';
import { Line } from './line.js';
import { sourceBytes } from './source.js';

export type Event =
  | { type: 'write'; bytes: number }
  | { type: 'send'; bytes: number }
  | { type: 'ack' }
  | { type: 'connect' }
  | { type: 'cut'; survivors: number }
  | { type: 'arrive' | 'arrive-back' | 'repeat'; connection: number };

/** Counted from the newest connection back; mostly it is the newest that moves. */
const connection = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat({ max: 3 }));

const onOneLine: fc.WeightedArbitrary<Event>[] = [
  weighted(3, { type: fc.constant('write'), bytes: fc.integer({ min: 0, max: 60 }) }),
  weighted(5, { type: fc.constant('send'), bytes: fc.integer({ min: 1, max: 40 }) }),
  weighted(5, { type: fc.constant('arrive'), connection }),
  weighted(5, { type: fc.constant('arrive-back'), connection }),
  weighted(1, { type: fc.constant('repeat'), connection }),
  weighted(3, { type: fc.constant('ack') }),
];

const connecting: fc.WeightedArbitrary<Event>[] = [
  weighted(1, { type: fc.constant('connect') }),
  weighted(1, { type: fc.constant('cut'), survivors: fc.nat({ max: 3 }) }),
];

// Without `size` fast-check would stay with a dozen events.
const LENGTH = { maxLength: 150, size: 'max' } as const;

export const steadyEvents = fc.array(fc.oneof(...onOneLine), LENGTH);

export const eventsWithCuts = fc.array(fc.oneof(...onOneLine, ...connecting), LENGTH);

function weighted<T>(
  weight: number,
  event: { [K in keyof T]: fc.Arbitrary<T[K]> },
): fc.WeightedArbitrary<T> {
  return { weight, arbitrary: fc.record(event) };
}

export interface Connection<Forth, Back> {
  readonly forth: Line<Forth>;
  readonly back: Line<Back>;
  /** The sender has heard from where the receiver wants to go on. */
  isGreeted: boolean;
}

/** What both kinds of stream have in common; they fill in what sender and receiver do. */
export abstract class Story<Forth, Back> {
  /** Newest first; the older ones still hold what is late. */
  readonly #connections: Connection<Forth, Back>[] = [];
  /** The newest connection while it is up. */
  protected current: Connection<Forth, Back> | undefined;
  /** How many bytes, all from the source, went in and came out. */
  written = 0;
  delivered = 0;

  get connections(): number {
    return this.#connections.length;
  }

  protected abstract write(bytes: number): void;
  protected abstract greet(on: Connection<Forth, Back>): void;
  protected abstract send(bytes: number, on: Connection<Forth, Back>): void;
  protected abstract ack(on: Connection<Forth, Back>): void;
  protected abstract arrived(frame: Forth, on: Connection<Forth, Back>): void;
  protected abstract arrivedBack(frame: Back, on: Connection<Forth, Back>): void;
  /** Throws when anything holds more than it may; asked after every event. */
  protected abstract checkBounds(): void;

  play(events: readonly Event[]): void {
    for (const event of events) {
      this.#step(event);
      this.checkBounds();
    }
  }

  /** A last connection that holds: on it everything comes to rest, in a bounded number of rounds. */
  finish(): void {
    if (this.current === undefined) this.play([{ type: 'connect' }]);
    for (let rounds = 0; this.delivered < this.written; rounds++) {
      check(rounds < MAX_ROUNDS, 'the stream is stuck');
      this.play([
        { type: 'arrive-back', connection: 0 },
        { type: 'send', bytes: 50 },
        { type: 'arrive', connection: 0 },
        { type: 'ack' },
      ]);
    }
    // What was late arrives at last, and must change nothing.
    for (const line of this.#connections) {
      for (let frame = line.forth.arrive(); frame !== undefined; frame = line.forth.arrive()) {
        this.arrived(frame, line);
      }
    }
  }

  protected deliver(bytes: Uint8Array): void {
    const expected = sourceBytes(this.delivered, this.delivered + bytes.length);
    check(Buffer.compare(bytes, expected) === 0, `other bytes at ${this.delivered}`);
    this.delivered += bytes.length;
  }

  #step(event: Event): void {
    switch (event.type) {
      case 'write':
        this.write(event.bytes);
        break;
      case 'send':
        if (this.current?.isGreeted) this.send(event.bytes, this.current);
        break;
      case 'ack':
        if (this.current !== undefined) this.ack(this.current);
        break;
      case 'connect':
        this.current = { forth: new Line(), back: new Line(), isGreeted: false };
        this.#connections.unshift(this.current);
        this.greet(this.current);
        break;
      case 'cut':
        this.current?.forth.cut(event.survivors);
        this.current?.back.cut(event.survivors);
        this.current = undefined;
        break;
      default:
        this.#move(event.type, this.#connections[event.connection]);
    }
  }

  #move(type: 'arrive' | 'arrive-back' | 'repeat', on: Connection<Forth, Back> | undefined): void {
    if (on === undefined) return;
    if (type === 'repeat') {
      on.forth.repeat();
    } else if (type === 'arrive') {
      const frame = on.forth.arrive();
      if (frame !== undefined) this.arrived(frame, on);
    } else {
      const frame = on.back.arrive();
      if (frame !== undefined) this.arrivedBack(frame, on);
    }
  }
}

const MAX_ROUNDS = 20_000;

/** An expectation that is asked millions of times; a failure shows in the property that plays the story. */
export function check(condition: boolean, otherwise: string): void {
  if (!condition) throw new Error(otherwise);
}
