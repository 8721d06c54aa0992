/** Who may write to a shell: one at a time. A human takes it from an agent at once; whoever lost the line keeps it for a while. */
import type { ActorType } from '../../../protocol/capabilities.js';

export interface Party {
  readonly actor: ActorType;
  /** Who it is: a person, or the agent that acts for one. */
  readonly name: string;
}

export type LeaseEvent = 'granted' | 'taken' | 'requested' | 'released' | 'refused';

export interface LeaseParts<P extends Party> {
  /** Tells one party what happened, by whose doing, and whether it writes from here on. */
  readonly tell: (to: P, event: LeaseEvent, isWriter: boolean, by: Party) => void;
  readonly monotonic: () => number;
}

/** How long the lease of a writer whose line was cut is kept for it. */
export const GRACE_MS = 30_000;

/** Who waits for it; more than that are told no. */
const REQUESTS_MAX = 32;

export class Lease<P extends Party> {
  readonly #parts: LeaseParts<P>;
  #holder: P | undefined;
  /** The writer whose line was cut. */
  #absent: { readonly party: Party; readonly untilMs: number } | undefined;
  readonly #requests = new Set<P>();

  constructor(parts: LeaseParts<P>) {
    this.#parts = parts;
  }

  get holder(): P | undefined {
    return this.#holder;
  }

  /** When somebody who waits is to be asked for again: the end of an absent writer's time. */
  get absentUntilMs(): number | undefined {
    return this.#absent?.untilMs;
  }

  /** Takes it if that is allowed without asking; says whether the party writes from here on. */
  take(party: P): boolean {
    if (this.#holder === party) return true;
    if (!this.#mayTake(party)) return false;
    const before = this.#holder;
    this.#give(party);
    if (before !== undefined) this.#parts.tell(before, 'taken', false, party);
    return true;
  }

  /** Takes it, or asks whoever has it. */
  request(party: P): boolean {
    if (this.take(party)) return true;
    if (this.#requests.size >= REQUESTS_MAX) this.#parts.tell(party, 'refused', false, party);
    else {
      this.#requests.add(party);
      if (this.#holder !== undefined) this.#parts.tell(this.#holder, 'requested', true, party);
    }
    return false;
  }

  /** Gives it back: to who has waited longest. */
  release(party: P): void {
    this.#requests.delete(party);
    if (this.#holder !== party) return;
    this.#holder = undefined;
    this.#parts.tell(party, 'released', false, party);
    this.#grantNext(party);
  }

  /** The party is gone: by its own wish, or because its line was cut. */
  leave(party: P, how: 'left' | 'cut'): void {
    this.#requests.delete(party);
    if (this.#holder !== party) return;
    this.#holder = undefined;
    if (how === 'left') this.#grantNext(party);
    else this.#absent = { party, untilMs: this.#parts.monotonic() + GRACE_MS };
  }

  /** An absent writer's time is up, perhaps: who waits gets it. */
  sweep(): void {
    const absent = this.#absent;
    if (absent === undefined || absent.untilMs > this.#parts.monotonic()) return;
    this.#absent = undefined;
    this.#grantNext(absent.party);
  }

  #mayTake(party: Party): boolean {
    const absent = this.#absent;
    const isKept = absent !== undefined && absent.untilMs > this.#parts.monotonic();
    const has = this.#holder ?? (isKept ? absent.party : undefined);
    if (has === undefined) return true;
    if (party.actor !== has.actor) return party.actor === 'human';
    return party.name === has.name;
  }

  #grantNext(by: Party): void {
    const [next] = this.#requests;
    if (next === undefined) return;
    this.#give(next);
    this.#parts.tell(next, 'granted', true, by);
  }

  #give(party: P): void {
    this.#requests.delete(party);
    this.#absent = undefined;
    this.#holder = party;
  }
}
