/** The user's terminal and a shell elsewhere, joined: keys go there, output comes here, and what happens between is said. */
import type { Clock } from '../../base/clock.js';
import type { LinkState, Shell, ShellEnd, ShellListener } from '../../client/shell/shell.js';
import type { ShellEvent } from '../../client/shell/shell-stream.js';
import type { Role, Size } from '../../client/shell/shell-words.js';
import type { AilsdError } from '../../protocol/errors.js';
import { EscapeKeys, escapeHelp, type KeyCommand } from './escape-keys.js';
import { ModeTracker } from './mode-tracker.js';
import { RawTerminal } from './raw-terminal.js';
import type { Recorder } from './recorder.js';
import { StatusLine } from './status-line.js';
import { TerminalWriter } from './terminal-writer.js';

export interface AttachmentOptions {
  readonly escape: string | undefined;
  readonly observe: boolean;
  /** No words of ours on the screen. */
  readonly quiet: boolean;
  readonly clock: Clock;
  readonly recorder: Recorder | undefined;
}

/** A cut that is mended sooner is nobody's business. */
const SILENT_CUT_MS = 1_000;
const STATUS_MS = 1_000;
const FLASH_MS = 3_000;
/** For the output that was missed to come before the screen is drawn again. */
const CATCH_UP_MS = 100;
/** Keys typed while another has the keyboard, until it is known whether it is given to us. */
const HELD_MAX_BYTES = 64 * 1024;
/** What the terminal may still take after the end. */
const DRAIN_MS = 500;
const BELL = '\x07';
const PUSH_TITLE = '\x1b[22;0t';
const POP_TITLE = '\x1b[23;0t';

export class Attachment implements AsyncDisposable, ShellListener {
  readonly #options: AttachmentOptions;
  readonly #keys: EscapeKeys;
  readonly #modes = new ModeTracker();
  readonly #writer = new TerminalWriter(1);
  readonly #terminal: RawTerminal;
  readonly #status: StatusLine;
  readonly #recorder: Recorder | undefined;
  #shell: Shell | undefined;
  #role: Role | undefined;
  #wasReady = false;
  #wasDrawn = false;
  /** Keys that wait: for room, or for the keyboard. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #down: { readonly sinceMs: number; error: AilsdError } | undefined;
  #needsRedraw = false;
  #flash: { readonly text: string; readonly untilMs: number } | undefined;
  readonly #ticker: NodeJS.Timeout;

  constructor(options: AttachmentOptions) {
    this.#options = options;
    this.#keys = new EscapeKeys(options.escape);
    this.#terminal = new RawTerminal(
      { keys: (bytes) => this.#typed(bytes), resized: (size) => this.#resized(size) },
      () => this.#repair(),
    );
    const writer = this.#writer;
    const modes = this.#modes;
    const terminal = this.#terminal;
    this.#status = new StatusLine({
      write: (text) => writer.write(text),
      get size() {
        return terminal.size;
      },
      get mayDraw() {
        return writer.isIdle && !modes.isInSequence && !modes.hasSavedCursor;
      },
    });
    this.#recorder = options.recorder;
    this.#ticker = setInterval(() => this.#tick(), STATUS_MS / 4);
  }

  get size(): Size {
    return this.#terminal.size;
  }

  /** Ends when the shell does, or when the user leaves. */
  async join(shell: Shell): Promise<ShellEnd> {
    this.#shell = shell;
    return await shell.ended;
  }

  event(event: Parameters<ShellListener['event']>[0]): void {
    switch (event.kind) {
      case 'output':
        this.#output(event.bytes, event.end);
        break;
      case 'screen':
        this.#screen(event);
        break;
      case 'ready':
        this.#ready(event.ready);
        break;
      case 'control':
        this.#control(event);
        break;
      case 'resized':
        this.#recorder?.resized(event.size);
        break;
      case 'presence':
        break;
    }
  }

  link(state: LinkState): void {
    if (state.kind === 'up') {
      this.#down = undefined;
      if (this.#status.hide()) this.#needsRedraw = true;
    } else if (this.#down === undefined) {
      this.#down = { sinceMs: this.#options.clock.monotonic(), error: state.error };
      // Keys are read again, so that ours work: what the shell cannot be given is dropped with a bell.
      this.#terminal.resume();
    } else {
      this.#down.error = state.error;
    }
  }

  problem(error: AilsdError): void {
    if (error.code === 'CAPABILITY_DENIED' || error.code === 'FORBIDDEN') this.#dropHeld();
    this.#say(error.message);
  }

  room(): void {
    this.#sendHeld();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#ticker);
    await this.#writer.drained(DRAIN_MS);
    this.#terminal[Symbol.dispose]();
    this.#writer[Symbol.dispose]();
  }

  #output(bytes: Uint8Array, end: number): void {
    this.#modes.take(bytes);
    this.#recorder?.output(bytes);
    this.#writer.write(bytes, () => this.#shell?.consumed(end));
  }

  #screen({ screen, end }: Extract<ShellEvent, { kind: 'screen' }>): void {
    const text = this.#blank() + screen;
    this.#modes.take(Buffer.from(screen));
    this.#recorder?.screen(text);
    this.#writer.write(text, () => this.#shell?.consumed(end));
    this.#needsRedraw = false;
    this.#status.forget();
  }

  /** The screen as a program finds it. What was on it before we came is scrolled out of sight, not erased. */
  #blank(): string {
    const isFirst = !this.#wasDrawn;
    this.#wasDrawn = true;
    const scroll = isFirst ? '\r\n'.repeat(this.#terminal.size.rows) : '';
    const undo = this.#modes.repair();
    this.#modes.take(Buffer.from(undo));
    return `${undo}\x1b[0m${scroll}\x1b[H\x1b[J`;
  }

  #ready({ state, role }: Extract<ShellEvent, { kind: 'ready' }>['ready']): void {
    this.#role = role;
    if (state === 'fresh') {
      // From its first byte: on a screen that already showed some of it, all of it again.
      if (this.#wasReady) this.#writer.write(this.#blank());
      this.#wasDrawn = true;
      this.#needsRedraw = false;
    }
    // The terminal keeps the title it had, and gets it back in the end.
    if (!this.#wasReady) this.#writer.write(PUSH_TITLE);
    this.#wasReady = true;
    if (role === 'observer' && !this.#options.observe) {
      this.#say('somebody else has the keyboard; type to take it');
    }
    if (this.#needsRedraw && state === 'resumed') this.#redrawSoon();
  }

  /** When what was missed is there: then the row that our words stood on is mended. */
  #redrawSoon(): void {
    setTimeout(() => {
      if (!this.#needsRedraw || this.#down !== undefined) return;
      this.#needsRedraw = false;
      this.#shell?.redraw();
    }, CATCH_UP_MS).unref();
  }

  #control(event: Extract<ShellEvent, { kind: 'control' }>): void {
    this.#role = event.role;
    const who = event.subject ?? (event.actor === 'agent' ? 'an agent' : 'somebody');
    if (event.role === 'writer') this.#sendHeld();
    switch (event.event) {
      case 'taken':
        this.#say(`${who} has taken the keyboard; type to take it back`);
        break;
      case 'requested':
        this.#say(`${who} asks for the keyboard`);
        break;
      case 'refused':
        this.#dropHeld();
        this.#say('the keyboard is not given');
        break;
      case 'granted':
      case 'released':
        break;
    }
  }

  #typed(bytes: Uint8Array): void {
    for (const event of this.#keys.take(bytes)) {
      if (event.kind === 'command') this.#command(event.command);
      else this.#input(event.bytes);
    }
  }

  #input(bytes: Uint8Array): void {
    const shell = this.#shell;
    if (shell === undefined || this.#options.observe) {
      if (!isAnswer(bytes)) this.#writer.write(BELL);
      return;
    }
    if (this.#role === 'observer') {
      // Answers of the terminal to the program's questions are the writer's to give.
      if (isAnswer(bytes)) return;
      if (this.#heldBytes === 0) shell.control('take');
      this.#hold(bytes);
      return;
    }
    if (this.#heldBytes === 0 && shell.write(bytes) === 'taken') return;
    this.#hold(bytes);
    // A live shell that is behind is waited for; on a dead line our own keys must still be heard.
    if (shell.isUp) this.#terminal.pause();
  }

  /** A copy: the terminal's buffer is not ours to keep. */
  #hold(bytes: Uint8Array): void {
    if (this.#heldBytes + bytes.length > HELD_MAX_BYTES) {
      this.#writer.write(BELL);
      return;
    }
    this.#held.push(bytes.slice());
    this.#heldBytes += bytes.length;
  }

  #sendHeld(): void {
    if (this.#heldBytes === 0 || this.#role !== 'writer') return;
    while (this.#held[0] !== undefined) {
      if (this.#shell?.write(this.#held[0]) !== 'taken') return;
      this.#heldBytes -= this.#held[0].length;
      this.#held.shift();
    }
    this.#terminal.resume();
  }

  #dropHeld(): void {
    if (this.#heldBytes > 0) this.#writer.write(BELL);
    this.#held = [];
    this.#heldBytes = 0;
    this.#terminal.resume();
  }

  #command(command: KeyCommand): void {
    switch (command) {
      case 'detach':
        this.#shell?.detach();
        break;
      case 'redraw':
        this.#shell?.redraw();
        break;
      case 'take':
        this.#shell?.control('take');
        break;
      case 'help':
        this.#writer.write(`\r\n${escapeHelp(this.#options.escape ?? '').join('\r\n')}\r\n`);
        break;
      case 'suspend':
        this.#terminal.suspend().then(
          () => this.#shell?.redraw(),
          () => undefined,
        );
        break;
    }
  }

  #resized(size: Size): void {
    this.#shell?.resize(size);
    this.#recorder?.resized(size);
  }

  /** Words that go by themselves. */
  #say(text: string): void {
    if (this.#options.quiet) return;
    this.#flash = { text, untilMs: this.#options.clock.monotonic() + FLASH_MS };
    this.#tick();
  }

  #tick(): void {
    if (this.#options.quiet) return;
    const nowMs = this.#options.clock.monotonic();
    const { sinceMs } = this.#down ?? { sinceMs: nowMs };
    if (nowMs - sinceMs >= SILENT_CUT_MS) {
      const leave =
        this.#options.escape === undefined ? '' : `; Enter ${this.#options.escape}. leaves`;
      const seconds = Math.floor((nowMs - sinceMs) / 1000);
      this.#status.show(`ailsd: no connection for ${seconds} s, trying again${leave}`);
    } else if (this.#flash !== undefined && nowMs < this.#flash.untilMs) {
      if (!this.#status.isShown) this.#status.show(`ailsd: ${this.#flash.text}`);
    } else if (this.#down === undefined && this.#status.hide()) {
      this.#flash = undefined;
      this.#shell?.redraw();
    }
  }

  #repair(): void {
    this.#status.hide();
    this.#writer.writeNow(this.#modes.repair() + (this.#wasReady ? POP_TITLE : ''));
  }
}

/** What a terminal says by itself: where the cursor is, what it can do, that the mouse moved or the window got the focus. */
function isAnswer(bytes: Uint8Array): boolean {
  if (bytes[0] !== 0x1b || bytes.length < 3) return false;
  const text = Buffer.from(bytes.subarray(0, 64)).toString('latin1');
  return /^\x1b(?:\[[?>=]?[\d;]*[cRnyt]|\[[IO]$|\[M|\[<|\]|P)/.test(text);
}
