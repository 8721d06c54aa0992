/** The shells of one sandbox: the main one, further ones, and those that ended while nobody saw it. */
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import { AilsdError } from '../../../protocol/errors.js';
import { newId, type RandomFill, type ShellId } from '../../../protocol/ids.js';
import { TokenRedactor } from '../../../protocol/token-redactor.js';
import type { Launcher } from '../isolation/launcher.js';
import { Recording } from './recording.js';
import { Shell } from './shell.js';
import { DEFAULT_SIZE, type Size, type SizePolicy } from './sizes.js';

export interface ShellsParts {
  readonly launcher: Launcher;
  /** Where recordings are kept. */
  readonly folder: string;
  /** Of programs that run, at most. */
  readonly maxShells: number;
  readonly ringBytes: number;
  /** What every process of the sandbox is given. */
  readonly env: Readonly<Record<string, string>>;
  readonly isRecorded: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: RandomFill;
}

export interface NewShell {
  readonly size?: Size | undefined;
  readonly policy?: SizePolicy | undefined;
  readonly term?: string | undefined;
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly command?: readonly string[] | undefined;
}

/** What `start` names: nothing for the main shell, `new` for another one. */
export const NEW_SHELL = 'new';

/** Ended shells whose end nobody has seen; beyond, the earliest is forgotten. */
const ENDED_MAX = 64;
const ENDED_MS = 24 * 60 * 60 * 1000;
const DEFAULT_TERM = 'xterm-256color';
const DEFAULT_ARGV = ['/bin/sh', '-c', 'exec "$(command -v bash || echo sh)" -l'] as const;
const NAME_MAX = 256;

export class Shells implements AsyncDisposable {
  readonly #parts: ShellsParts;
  readonly #shells = new Map<ShellId, Shell>();
  #main: ShellId | undefined;
  /** Programs that are being started; counted, and waited for by whoever wants the same one. */
  #starting = 0;
  #startingMain: Promise<Shell> | undefined;
  #isClosed = false;

  constructor(parts: ShellsParts) {
    this.#parts = parts;
  }

  /** In the order in which they were started. */
  list(): readonly Shell[] {
    this.#forgetOld();
    return [...this.#shells.values()];
  }

  get running(): number {
    let count = 0;
    for (const shell of this.#shells.values()) if (shell.outcome === undefined) count += 1;
    return count;
  }

  get viewers(): number {
    let count = 0;
    for (const shell of this.#shells.values()) count += shell.viewers;
    return count;
  }

  get(id: string): Shell {
    this.#forgetOld();
    for (const shell of this.#shells.values()) if (shell.id === id) return shell;
    throw new AilsdError('NOT_FOUND', 'there is no such shell; it may have ended');
  }

  /** `mayStart`: whoever only watches makes no shell. */
  async open(wanted: string | undefined, options: NewShell, mayStart: boolean): Promise<Shell> {
    if (wanted !== undefined && wanted !== NEW_SHELL) return this.get(wanted);
    if (wanted === NEW_SHELL) return this.#start(options, mayStart);
    const main = this.#main === undefined ? undefined : this.#shells.get(this.#main);
    if (main !== undefined && main.outcome === undefined) return main;
    if (this.#startingMain !== undefined) return this.#startingMain;
    const starting = this.#start(options, mayStart);
    this.#startingMain = starting;
    try {
      const shell = await starting;
      this.#main = shell.id;
      return shell;
    } finally {
      this.#startingMain = undefined;
    }
  }

  /** Where the recording of a shell is, also of one that is gone. */
  recordingPath(id: string): string {
    return join(this.#parts.folder, `${id}.cast`);
  }

  /** Ends all programs at once, and forgets everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const shell of this.#shells.values()) shell.end('lease');
    const { clock } = this.#parts;
    const deadline = clock.monotonic() + END_MS;
    while (this.running > 0 && clock.monotonic() < deadline) await clock.sleep(5);
    for (const shell of this.#shells.values()) shell.dispose();
    this.#shells.clear();
  }

  async #start(options: NewShell, mayStart: boolean): Promise<Shell> {
    if (!mayStart)
      throw new AilsdError(
        'CAPABILITY_DENIED',
        'there is no shell yet, and this token starts none',
        {
          details: { capability: 'shell' },
        },
      );
    const { maxShells } = this.#parts;
    if (this.running + this.#starting >= maxShells)
      throw new AilsdError('RATE_LIMITED', `a sandbox may have ${maxShells} shells`, {
        details: { retry_after_ms: 1_000 },
      });
    this.#starting += 1;
    try {
      return await this.#launch(options);
    } finally {
      this.#starting -= 1;
    }
  }

  async #launch(options: NewShell): Promise<Shell> {
    const { launcher, env, ringBytes, clock, logger, random } = this.#parts;
    const { cols, rows } = options.size ?? DEFAULT_SIZE;
    const [file, ...args] = options.command ?? DEFAULT_ARGV;
    const program = await launcher.launch({
      argv: [file ?? DEFAULT_ARGV[0], ...args],
      cwd: options.cwd,
      env: { LANG: 'C.UTF-8', ...env, ...options.env, TERM: options.term ?? DEFAULT_TERM },
      kind: 'shell',
    });
    if (this.#isClosed) throw new AilsdError('BACKEND_UNAVAILABLE', 'the sandbox is stopping');
    const id = newId('shell', random);
    const title = (options.command?.join(' ') ?? 'shell').slice(0, NAME_MAX);
    const shell = new Shell({
      id,
      program: { ...program, cols, rows },
      title,
      policy: options.policy ?? 'driver',
      ringBytes,
      clock,
      logger,
      recording: this.#record(id, { cols, rows }, title),
      onChange: (changed) => this.#changed(changed),
    });
    this.#shells.set(id, shell);
    logger.info('shell started', { shell_id: id });
    return shell;
  }

  #record(id: ShellId, size: Size, title: string): Recording | undefined {
    const { isRecorded, clock, logger } = this.#parts;
    if (!isRecorded) return undefined;
    const redact = new TokenRedactor();
    return new Recording({ path: this.recordingPath(id), size, title, clock, logger, redact });
  }

  #changed(shell: Shell): void {
    if (shell.isOver) this.#forget(shell);
  }

  #forgetOld(): void {
    const ended = [...this.#shells.values()].filter(
      ({ outcome, viewers }) => outcome && viewers === 0,
    );
    const before = this.#parts.clock.now() - ENDED_MS;
    ended.forEach((shell, index) => {
      const isTooMany = index < ended.length - ENDED_MAX;
      if (isTooMany || (shell.endedAtMs ?? 0) < before) this.#forget(shell);
    });
  }

  #forget(shell: Shell): void {
    if (!this.#shells.delete(shell.id)) return;
    shell.dispose();
  }
}

const END_MS = 2_000;
