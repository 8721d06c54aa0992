/** One command: its program, its outputs by offset, its input once each, who follows it, and how it ended. Lives by itself. */
import type { Clock } from '../../../base/clock.js';
import { createDeferred } from '../../../base/deferred.js';
import type { CommandId } from '../../../protocol/ids.js';
import { type Accepted, Inbox } from '../../../stream/inbox.js';
import { Journal } from './journal.js';
import type { CommandOutcome, EndedBy } from './outcome.js';
import type { OutputLog } from './output-log.js';
import type { Program, ProgramEnd, ProgramEvents, StreamName } from './program.js';

/** Who is sent what a command says, as it comes. */
export interface Follower {
  /** Bytes that have just been kept. */
  fresh(stream: StreamName, offset: number, bytes: Uint8Array): void;
  /** Whether so much was not sent yet that the program is to wait. */
  isBehind(stream: StreamName): boolean;
  /** Input was taken. */
  applied(): void;
  ended(): void;
  /** Somebody else follows it from now on. */
  replaced(): void;
}

export interface CommandParts {
  readonly id: CommandId;
  readonly argv: readonly string[];
  readonly logs: Readonly<Record<StreamName, OutputLog>>;
  readonly startedAtMs: number;
  readonly clock: Clock;
  /** Says how it ended, when its program has. */
  readonly judge: (end: ProgramEnd, by: EndedBy | undefined) => Promise<CommandOutcome>;
}

/** Asked to end, it has so long to do so. */
export const GRACE_MS = 1_000;
/** Followed by nobody for so long, it is held back for nobody. */
const ABANDONED_MS = 10 * 60 * 1000;

export class Command {
  readonly id: CommandId;
  readonly argv: readonly string[];
  readonly startedAtMs: number;
  readonly logs: CommandParts['logs'];
  readonly journal = new Journal();
  readonly #parts: CommandParts;
  readonly #ended = createDeferred();
  readonly #input = new Inbox();
  /** Told of each change, whoever it is that waits. */
  readonly #watchers = new Set<() => void>();
  #program: Program | undefined;
  #follower: Follower | undefined;
  #applied = 0;
  #isInputEnded = false;
  #outcome: CommandOutcome | undefined;
  #endedAtMs: number | undefined;
  #endedBy: EndedBy | undefined;
  #ending: Promise<void> | undefined;
  #abandoning: NodeJS.Timeout | undefined;
  #timeout: AbortController | undefined;
  lastActiveAtMs: number;

  constructor(parts: CommandParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.argv = parts.argv;
    this.logs = parts.logs;
    this.startedAtMs = parts.startedAtMs;
    this.lastActiveAtMs = parts.startedAtMs;
  }

  /** One whose end is known from before. */
  static past(parts: CommandParts, outcome: CommandOutcome, endedAtMs: number): Command {
    const command = new Command(parts);
    command.#settle(outcome, endedAtMs);
    return command;
  }

  get outcome(): CommandOutcome | undefined {
    return this.#outcome;
  }

  get endedAtMs(): number | undefined {
    return this.#endedAtMs;
  }

  /** Resolves when its outcome is there. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Input that is kept for a program which does not read it. */
  get unappliedBytes(): number {
    return this.#input.next - this.#applied;
  }

  /** Everything before it is here: a client sends again from it. */
  get inputOffset(): number {
    return this.#input.next;
  }

  /** Everything before it was taken by the program, or by nobody. */
  get appliedOffset(): number {
    return this.#outcome === undefined ? this.#applied : this.#input.next;
  }

  /** For the program that is started for it. */
  get events(): ProgramEvents {
    return {
      data: (stream, bytes) => this.#data(stream, bytes),
      taken: (bytes) => this.#taken(bytes),
      ended: (end) => this.#programEnded(end),
    };
  }

  begin(program: Program, timeoutMs: number | undefined): void {
    this.#program = program;
    if (timeoutMs === undefined) return;
    this.#timeout = new AbortController();
    this.#parts.clock.sleep(timeoutMs, this.#timeout.signal).then(
      () => this.end('timeout'),
      () => undefined,
    );
  }

  #data(stream: StreamName, bytes: Uint8Array): void {
    const log = this.logs[stream];
    const offset = log.end;
    this.lastActiveAtMs = this.#parts.clock.now();
    const kept = log.append(bytes);
    if (kept.length > 0) {
      this.journal.add(stream, offset, this.lastActiveAtMs);
      this.#follower?.fresh(stream, offset, kept);
    }
    this.#tell();
    this.pace(stream);
  }

  /** Holds the program back while nobody can take more of what it says. */
  pace(stream: StreamName): void {
    const isHeld = this.logs[stream].isFull || this.#follower?.isBehind(stream) === true;
    if (isHeld) this.#program?.hold(stream);
    else this.#program?.release(stream);
  }

  #taken(bytes: number): void {
    this.#applied += bytes;
    this.#follower?.applied();
  }

  #programEnded(end: ProgramEnd): void {
    this.#timeout?.abort();
    this.#parts.judge(end, this.#endedBy).then((outcome) => {
      this.#settle(outcome, this.#parts.clock.now());
    });
  }

  /** Whoever followed before does no longer. */
  follow(follower: Follower): void {
    const before = this.#follower;
    this.#follower = follower;
    before?.replaced();
    clearTimeout(this.#abandoning);
    for (const log of Object.values(this.logs)) log.abandon(false);
  }

  unfollow(follower: Follower): void {
    if (this.#follower !== follower) return;
    this.#follower = undefined;
    if (this.#outcome !== undefined) return;
    for (const stream of ['stdout', 'stderr'] as const) this.pace(stream);
    this.#abandoning = setTimeout(() => {
      for (const log of Object.values(this.logs)) log.abandon(true);
    }, ABANDONED_MS);
    this.#abandoning.unref();
  }

  /** A chunk that was here before is taken once. */
  input(bytes: Uint8Array, offset: number | undefined): Accepted {
    const accepted = this.#input.accept(offset ?? this.#input.next, bytes);
    if (accepted.kind !== 'fresh' || accepted.bytes.length === 0) return accepted;
    this.lastActiveAtMs = this.#parts.clock.now();
    if (this.#outcome === undefined && !this.#isInputEnded) this.#program?.write(accepted.bytes);
    else this.#taken(accepted.bytes.length);
    return accepted;
  }

  /** False: input before it is missing. */
  endInput(offset: number | undefined): boolean {
    if (offset !== undefined && offset > this.#input.next) return false;
    if (!this.#isInputEnded) this.#program?.endInput();
    this.#isInputEnded = true;
    return true;
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    if (this.#outcome === undefined) await this.#program?.signal(signal);
  }

  resize(cols: number, rows: number): void {
    if (this.#outcome === undefined) this.#program?.resize(cols, rows);
  }

  /** Asks it to, then makes it, and all that it started; resolves when it has ended. */
  end(by: EndedBy): Promise<void> {
    if (this.#outcome !== undefined) return this.ended;
    this.#endedBy ??= by;
    this.#ending ??= this.#end(by);
    return this.#ending;
  }

  /** Calls back at each change until it is called off. */
  watch(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  }

  async #end(by: EndedBy): Promise<void> {
    const graceMs = by === 'lease' ? 0 : GRACE_MS;
    const program = this.#program;
    if (graceMs > 0) await program?.signal('SIGTERM').catch(() => undefined);
    const waiting = new AbortController();
    const late = this.#parts.clock.sleep(graceMs, waiting.signal).catch(() => undefined);
    await Promise.race([this.ended, late]);
    waiting.abort();
    // Also when it has ended: what left its group may not have.
    await program?.kill().catch(() => undefined);
    await this.ended;
  }

  #settle(outcome: CommandOutcome, endedAtMs: number): void {
    this.#outcome = outcome;
    this.#endedAtMs = endedAtMs;
    this.#program = undefined;
    clearTimeout(this.#abandoning);
    this.#ended.resolve();
    this.#follower?.ended();
    this.#tell();
  }

  #tell(): void {
    for (const changed of this.#watchers) changed();
  }
}
