/** A shell: a program in a terminal that lives here, whoever is connected. Its output has offsets, its input is applied once. */
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import { CLOSES } from '../../../protocol/closes.js';
import { AilsdError } from '../../../protocol/errors.js';
import { SCREEN_MAX_CHARS, VIEWERS_MAX } from '../../../protocol/frame-fields.js';
import type { ShellId } from '../../../protocol/ids.js';
import { Ring } from '../../../stream/ring.js';
import { createEmulator } from './emulator.js';
import { Inputs } from './inputs.js';
import { Lease } from './lease.js';
import type { ForkRequest } from './native-pty.js';
import { type ShellOutcome, toOutcome } from './outcome.js';
import { Pty } from './pty.js';
import type { Recording } from './recording.js';
import { Screen, type Snapshot } from './screen.js';
import { chooseSize, isSameSize, type Size, type SizePolicy } from './sizes.js';
import { type Line, Viewer } from './viewer.js';

export interface ShellParts {
  readonly id: ShellId;
  readonly program: ForkRequest;
  readonly title: string;
  readonly policy: SizePolicy;
  readonly ringBytes: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly recording: Recording | undefined;
  /** Somebody came or went, or typed, or the program ended. */
  readonly onChange: (shell: Shell) => void;
}

export interface Attach {
  readonly line: Line;
  readonly clientId?: string | undefined;
  /** The first output byte the client lacks. */
  readonly offset?: number | undefined;
  readonly inputOffset?: number | undefined;
  readonly size?: Size | undefined;
  readonly policy?: SizePolicy | undefined;
  readonly historyLines?: number | undefined;
  readonly isObserver: boolean;
}

/** How far output may run ahead of the writer before the program is held; the ring must hold that and more. */
const AHEAD_BYTES = 1024 * 1024;
/** After a cut the program waits so long for its writer before its output is lost to it; only a flood gets that far. */
const RETURN_MS = 5_000;
/** Changes of size within this time of each other become one. */
const RESIZE_MS = 100;
/** What the kernel may still hold of a program's output when it ends. */
const RESERVE_BYTES = 256 * 1024;
/** A program that was asked to end is made to after this. */
const KILL_GRACE_MS = 2_000;

export class Shell {
  readonly id: ShellId;
  readonly startedAtMs: number;
  readonly title: string;
  readonly #parts: ShellParts;
  readonly #ring: Ring;
  readonly #screen: Screen;
  readonly #pty: Pty;
  readonly #inputs = new Inputs();
  readonly #lease: Lease<Viewer>;
  readonly #viewers = new Set<Viewer>();
  readonly #aheadBytes: number;
  #policy: SizePolicy;
  #size: Size;
  #sizings = 0;
  #resizeTimer: NodeJS.Timeout | undefined;
  #leaseTimer: NodeJS.Timeout | undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #awaited: { readonly offset: number; readonly timer: NodeJS.Timeout } | undefined;
  #isPaused = false;
  #isTurnOpen = false;
  #isPresenceDue = false;
  #killedBy: ShellOutcome['origin'] | undefined;
  #outcome: ShellOutcome | undefined;
  #endedAtMs: number | undefined;
  #isExitTaken = false;
  #lastActiveAtMs: number;

  constructor(parts: ShellParts) {
    const { id, program, policy, ringBytes, clock } = parts;
    this.id = id;
    this.title = parts.title;
    this.#parts = parts;
    this.startedAtMs = clock.now();
    this.#lastActiveAtMs = this.startedAtMs;
    this.#policy = policy;
    this.#size = { cols: program.cols, rows: program.rows };
    this.#ring = new Ring(ringBytes);
    this.#aheadBytes = Math.min(AHEAD_BYTES, ringBytes / 4);
    this.#lease = new Lease({
      monotonic: () => clock.monotonic(),
      tell: (to, event, isWriter, by) => {
        to.isWriter = isWriter;
        if (!to.isReady) return;
        const role = isWriter ? 'writer' : 'observer';
        to.line.send({ type: 'control', event, role, actor: by.actor, subject: by.name });
      },
    });
    this.#screen = new Screen({
      ring: this.#ring,
      size: this.#size,
      createEmulator,
      onRead: () => this.#throttle(),
    });
    this.#pty = new Pty(program, {
      data: (bytes) => this.#output(bytes),
      exit: (exit) => this.#ended(toOutcome(exit, this.#killedBy)),
    });
  }

  get pid(): number {
    return this.#pty.pid;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  get size(): Size {
    return this.#size;
  }

  get offset(): number {
    return this.#ring.end;
  }

  get outcome(): ShellOutcome | undefined {
    return this.#outcome;
  }

  get endedAtMs(): number | undefined {
    return this.#endedAtMs;
  }

  /** Its end was told to somebody who could have written: nothing of it is needed any more. */
  get isOver(): boolean {
    return this.#isExitTaken && this.#viewers.size === 0;
  }

  get lastActiveAtMs(): number {
    return this.#lastActiveAtMs;
  }

  get writer(): Viewer | undefined {
    return this.#lease.holder;
  }

  /** Subscribing and the replay are one step: not a byte is missed or doubled between them. */
  attach(wish: Attach): Viewer {
    if (this.#viewers.size >= VIEWERS_MAX)
      throw new AilsdError('RATE_LIMITED', `a shell may have ${VIEWERS_MAX} viewers`);
    const { line, clientId, offset, inputOffset, size, isObserver } = wish;
    const isAcking = clientId !== undefined || offset !== undefined || inputOffset !== undefined;
    const viewer = new Viewer({ line, clientId, isObserver, isAcking, size });
    viewer.sizedAt = ++this.#sizings;
    this.#replaceOldLine(viewer);
    this.#viewers.add(viewer);
    if (viewer.mayWrite) this.#grant(viewer, wish.policy);
    this.#touch();
    const key = viewer.inputKey;
    const nextInput = key === undefined ? 0 : this.#inputs.join(key, inputOffset ?? 0);
    const isKept = offset !== undefined && offset >= this.#ring.start && offset <= this.#ring.end;
    if (isKept) this.#ready(viewer, 'resumed', offset, nextInput);
    else if (this.#ring.end === 0) this.#ready(viewer, 'fresh', 0, nextInput);
    else this.#sendScreen(viewer, wish.historyLines ?? 0, nextInput);
    this.#throttle();
    this.#parts.onChange(this);
    return viewer;
  }

  /** `left`: it said so; `cut`: nobody knows whether it comes again. `isExitTaken`: it has certainly seen the exit. */
  detach(viewer: Viewer, how: 'left' | 'cut', isExitTaken: boolean): void {
    if (!this.#viewers.delete(viewer)) return;
    viewer.detach();
    if (viewer.isWriter && how === 'cut' && viewer.clientId !== undefined)
      this.#await(viewer.acked);
    viewer.isWriter = false;
    this.#lease.leave(viewer, how);
    if (isExitTaken && viewer.isExitSent && !viewer.isObserver) this.#isExitTaken = true;
    this.#watchLease();
    this.#applySizes();
    this.#throttle();
    this.#presence();
    this.#touch();
    this.#parts.onChange(this);
  }

  /** Applies input once. `gap`: something before it never came. */
  input(viewer: Viewer, bytes: Uint8Array, offset: number | undefined): 'taken' | 'gap' {
    this.#checkWriter(viewer);
    const key = viewer.inputKey;
    let fresh = bytes;
    if (key !== undefined && offset !== undefined) {
      const from = this.#inputs.nextOf(key);
      const accepted = this.#inputs.accept(key, offset, bytes);
      if (accepted.kind === 'gap') return 'gap';
      fresh = accepted.bytes;
      viewer.acknowledgeInput(from, () => this.#inputs.nextOf(key));
    }
    this.#touch();
    this.#parts.recording?.input(viewer, fresh);
    if (this.#pty.write(fresh, () => viewer.line.release()) === 'full') viewer.line.hold();
    return 'taken';
  }

  resize(viewer: Viewer, size: Size): void {
    this.#checkWriter(viewer);
    viewer.size = size;
    viewer.sizedAt = ++this.#sizings;
    this.#applySizes();
  }

  signal(viewer: Viewer, signal: NodeJS.Signals): void {
    this.#checkWriter(viewer);
    this.#touch();
    this.#pty.signal(signal);
  }

  control(viewer: Viewer, action: 'take' | 'request' | 'release'): void {
    const before = this.#lease.holder;
    if (action === 'release') this.#lease.release(viewer);
    else {
      const isWriter = action === 'take' ? this.#lease.take(viewer) : this.#lease.request(viewer);
      if (isWriter || action === 'take') {
        viewer.isWriter = isWriter;
        viewer.line.send({
          type: 'control',
          event: isWriter ? 'granted' : 'refused',
          role: isWriter ? 'writer' : 'observer',
          actor: viewer.actor,
          subject: viewer.name,
        });
      }
    }
    if (this.#lease.holder !== before) this.#writerChanged();
  }

  ack(viewer: Viewer, offset: number): void {
    viewer.ack(offset);
    this.#goOn(viewer);
  }

  drained(viewer: Viewer): void {
    if (viewer.drained()) this.#goOn(viewer);
  }

  /** Asks the program to end, and soon makes it. */
  kill(by: ShellOutcome['origin']): void {
    if (this.#outcome !== undefined) return;
    this.#killedBy ??= by;
    this.#pty.resume();
    this.#pty.signalAll('SIGHUP');
    this.#pty.signalAll('SIGCONT');
    this.#killTimer ??= setTimeout(() => this.#pty.signalAll('SIGKILL'), KILL_GRACE_MS);
  }

  /** At once, without asking. */
  end(by: ShellOutcome['origin']): void {
    this.#killedBy ??= by;
    this.#pty.signalAll('SIGKILL');
  }

  /** It is over, and nobody will ask for it again. */
  dispose(): void {
    clearTimeout(this.#resizeTimer);
    clearTimeout(this.#leaseTimer);
    clearTimeout(this.#killTimer);
    clearTimeout(this.#awaited?.timer);
    for (const viewer of this.#viewers) viewer.line.close(CLOSES.done);
    this.#screen[Symbol.dispose]();
    this.#parts.recording?.close();
  }

  /** Who is attached, for lists. */
  presence(): readonly { actor: Viewer['actor']; name: string; isWriter: boolean }[] {
    return [...this.#viewers].map(({ actor, name, isWriter }) => ({ actor, name, isWriter }));
  }

  /** Until everything so far is in its recording. */
  async recorded(): Promise<void> {
    await this.#parts.recording?.flushed();
  }

  #output(chunk: Uint8Array): void {
    const offset = this.#ring.end;
    this.#ring.append(chunk);
    // The first chunk of a turn goes out at once; what comes in the same turn goes together at its end.
    if (!this.#isTurnOpen) {
      this.#isTurnOpen = true;
      for (const viewer of this.#viewers) viewer.sendFresh(offset, chunk);
      setImmediate(this.#endTurn);
    }
    this.#throttle();
  }

  readonly #endTurn = (): void => {
    this.#isTurnOpen = false;
    for (const viewer of this.#viewers) this.#pump(viewer);
    this.#throttle();
    this.#screen.note();
    this.#parts.recording?.note(this.#ring);
    if (this.#viewers.size > 0) this.#lastActiveAtMs = this.#parts.clock.now();
  };

  #goOn(viewer: Viewer): void {
    this.#pump(viewer);
    this.#throttle();
  }

  #pump(viewer: Viewer): void {
    if (!viewer.isReady || viewer.isAwaitingScreen) return;
    const lag = this.#ring.end - viewer.acked;
    const isLate = !viewer.isWriter && lag > this.#ring.capacityBytes / 2 && viewer.hasRoom;
    if (isLate || viewer.pump(this.#ring) === 'behind') this.#sendScreen(viewer, 0);
    else if (this.#outcome !== undefined && viewer.sent === this.#ring.end)
      this.#sendExit(viewer, this.#outcome);
  }

  /** The program waits for its writer, and for a screen that would otherwise lose sight of it; for nobody else. */
  #throttle(): void {
    if (this.#outcome !== undefined) return;
    const writer = this.#lease.holder;
    const ahead = writer?.isReady === true ? this.#ring.end - writer.acked : 0;
    const { capacityBytes } = this.#ring;
    const isLosing =
      this.#awaited !== undefined &&
      this.#ring.end - this.#awaited.offset >
        capacityBytes - Math.min(RESERVE_BYTES, capacityBytes / 4);
    const unseen = this.#screen.backlogBytes;
    const limit = this.#isPaused ? this.#aheadBytes / 2 : this.#aheadBytes;
    const unseenLimit = capacityBytes / (this.#isPaused ? 4 : 2);
    const isToPause = isLosing || ahead > limit || unseen > unseenLimit;
    if (isToPause === this.#isPaused) return;
    this.#isPaused = isToPause;
    if (isToPause) this.#pty.pause();
    else this.#pty.resume();
  }

  /** Keeps what a writer whose line was cut has not got, for a while. */
  #await(offset: number): void {
    clearTimeout(this.#awaited?.timer);
    const timer = setTimeout(() => {
      this.#awaited = undefined;
      this.#throttle();
    }, RETURN_MS);
    this.#awaited = { offset, timer };
  }

  #ready(
    viewer: Viewer,
    state: 'fresh' | 'resumed' | 'snapshot',
    offset: number,
    inputOffset: number,
  ): void {
    viewer.begin(offset);
    viewer.isReady = true;
    viewer.line.send({
      type: 'ready',
      shell_id: this.id,
      state,
      role: viewer.isWriter ? 'writer' : 'observer',
      offset,
      input_offset: inputOffset,
      cols: this.#size.cols,
      rows: this.#size.rows,
      size_policy: this.#policy,
    });
    if (state !== 'snapshot') this.#pump(viewer);
    this.#presence();
  }

  /** For one who lacks output that is gone, or has seen nothing: the picture, then what comes after it. */
  #sendScreen(viewer: Viewer, historyLines: number, firstInput?: number): void {
    viewer.isAwaitingScreen = true;
    this.#screen.snapshot(historyLines).then(
      (snapshot) => {
        viewer.isAwaitingScreen = false;
        if (!this.#viewers.has(viewer)) return;
        if (firstInput === undefined) viewer.begin(snapshot.offset);
        else this.#ready(viewer, 'snapshot', snapshot.offset, firstInput);
        for (const frame of snapshotFrames(snapshot)) viewer.line.send(frame);
        this.#goOn(viewer);
      },
      (error: unknown) => {
        this.#parts.logger.error('no screen', { shell_id: this.id, error });
        viewer.line.close(CLOSES.internal);
      },
    );
  }

  #ended(outcome: ShellOutcome): void {
    this.#outcome = outcome;
    this.#endedAtMs = this.#parts.clock.now();
    clearTimeout(this.#killTimer);
    this.#parts.recording?.note(this.#ring);
    for (const viewer of this.#viewers) this.#pump(viewer);
    this.#parts.logger.info('shell ended', {
      shell_id: this.id,
      exit_code: outcome.exit_code,
      signal: outcome.signal,
      output_bytes: this.#ring.end,
    });
    this.#parts.onChange(this);
  }

  #sendExit(viewer: Viewer, outcome: ShellOutcome): void {
    if (viewer.isExitSent) return;
    viewer.isExitSent = true;
    viewer.line.send({ type: 'exit', ...outcome, offset: this.#ring.end });
    viewer.line.close(CLOSES.done);
  }

  /** The same client on a new line: the old one is dead and does not know it yet. */
  #replaceOldLine(viewer: Viewer): void {
    const key = viewer.inputKey;
    if (key === undefined) return;
    for (const old of this.#viewers) {
      if (old.inputKey !== key || old.isObserver !== viewer.isObserver) continue;
      this.detach(old, 'cut', false);
      old.line.close(CLOSES.done);
    }
  }

  #grant(viewer: Viewer, policy: SizePolicy | undefined): void {
    if (!this.#lease.take(viewer)) return;
    viewer.isWriter = true;
    clearTimeout(this.#awaited?.timer);
    this.#awaited = undefined;
    if (policy !== undefined) this.#policy = policy;
    this.#watchLease();
    this.#applySizes();
  }

  /** Throws for one who may not write. A person who types where an agent writes takes over by it. */
  #checkWriter(viewer: Viewer): void {
    if (!viewer.mayWrite)
      throw new AilsdError('CAPABILITY_DENIED', 'this connection only watches', {
        details: { capability: 'shell' },
      });
    if (viewer.isWriter) return;
    const isWriter = this.#lease.take(viewer);
    if (!isWriter)
      throw new AilsdError('FORBIDDEN', 'somebody else writes to this shell', {
        hint: 'ask for it with a control frame',
      });
    viewer.isWriter = true;
    viewer.line.send({
      type: 'control',
      event: 'granted',
      role: 'writer',
      actor: viewer.actor,
      subject: viewer.name,
    });
    this.#writerChanged();
  }

  #writerChanged(): void {
    this.#watchLease();
    this.#applySizes();
    this.#throttle();
    this.#presence();
  }

  #watchLease(): void {
    clearTimeout(this.#leaseTimer);
    const until = this.#lease.absentUntilMs;
    if (until === undefined) return;
    this.#leaseTimer = setTimeout(
      () => {
        const before = this.#lease.holder;
        this.#lease.sweep();
        if (this.#lease.holder !== before) this.#writerChanged();
      },
      until - this.#parts.clock.monotonic() + 1,
    );
    this.#leaseTimer.unref();
  }

  /** At once, then at most every tenth of a second: dragging a window's edge makes one change of many. */
  #applySizes(): void {
    if (this.#resizeTimer !== undefined || this.#outcome !== undefined) return;
    const counting = [...this.#viewers].filter((viewer) => viewer.mayWrite);
    const size = chooseSize(this.#policy, counting, this.#size);
    if (isSameSize(size, this.#size)) return;
    this.#size = size;
    this.#screen.resize(size);
    this.#pty.resize(size.cols, size.rows);
    this.#parts.recording?.resize(size);
    const offset = this.#ring.end;
    for (const viewer of this.#viewers) {
      const isOwn = viewer.size !== undefined && isSameSize(viewer.size, size);
      if (viewer.isReady && !isOwn) viewer.line.send({ type: 'resize', ...size, offset });
    }
    this.#resizeTimer = setTimeout(() => {
      this.#resizeTimer = undefined;
      this.#applySizes();
    }, RESIZE_MS);
  }

  /** One word to all about who is there, after whatever is happening has happened. One who is alone knows. */
  #presence(): void {
    if (this.#isPresenceDue) return;
    this.#isPresenceDue = true;
    setImmediate(() => {
      this.#isPresenceDue = false;
      const viewers = [...this.#viewers].map(({ actor, name, isWriter, clientId }) => ({
        actor,
        role: isWriter ? ('writer' as const) : ('observer' as const),
        subject: name,
        ...(clientId === undefined ? {} : { client_id: clientId }),
      }));
      if (viewers.length < 2 && !this.#hadCompany) return;
      this.#hadCompany = viewers.length > 1;
      for (const viewer of this.#viewers)
        if (viewer.isReady) viewer.line.send({ type: 'presence', viewers });
    });
  }

  #hadCompany = false;

  #touch(): void {
    this.#lastActiveAtMs = this.#parts.clock.now();
  }
}

/** A screen may be longer than a frame: cut where no character is in two. */
function* snapshotFrames({ screen, offset, size }: Snapshot) {
  let rest = screen;
  do {
    let end = Math.min(rest.length, SCREEN_MAX_CHARS);
    if (end < rest.length && /[\ud800-\udbff]/.test(rest.charAt(end - 1))) end -= 1;
    const part = rest.slice(0, end);
    rest = rest.slice(end);
    yield {
      type: 'snapshot' as const,
      offset,
      ...size,
      screen: part,
      ...(rest === '' ? {} : { more: true }),
    };
  } while (rest !== '');
}
