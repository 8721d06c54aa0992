/** The commands of one sandbox: those that run, and how those ended that ran. An id never runs twice. */
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import { AilsdError } from '../../../protocol/errors.js';
import { type CommandId, newId, type RandomFill } from '../../../protocol/ids.js';
import type { CommandRecord } from '../../../protocol/shapes/sandboxd.js';
import type { Launch, Launcher, LaunchRequest } from '../isolation/launcher.js';
import type { Size } from '../shell/sizes.js';
import { Command } from './command.js';
import { COMMAND_VARIABLE } from './escaped.js';
import { mayBeKilled, toOutcome, UNSEEN } from './outcome.js';
import { OutputLog } from './output-log.js';
import { PipedProgram } from './piped-program.js';
import { closePipes, PipeStore } from './pipes.js';
import type { Program, ProgramEnd, StreamName } from './program.js';
import { COMMANDS_MAX, Records, shorten } from './records.js';
import { TerminalProgram } from './terminal-program.js';

export interface CommandsParts {
  readonly launcher: Launcher;
  /** Where outcomes and what does not fit into memory are kept. */
  readonly folder: string;
  /** Of programs that run, at most; 0: no limit. */
  readonly maxCommands: number;
  /** What every process of the sandbox is given. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: RandomFill;
}

export interface NewCommand {
  readonly argv: readonly string[];
  /** The caller's own name for it. */
  readonly id?: CommandId | undefined;
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs?: number | undefined;
  /** Of each output, what is kept and sent. */
  readonly limits: Readonly<Record<StreamName, number>>;
  /** `unread`: somebody follows it and says what was taken. */
  readonly keeps: 'all' | 'unread';
  readonly terminal?: { readonly size: Size; readonly term: string } | undefined;
}

/** Outputs of commands that have ended: memory, and files. Beyond, those of the earliest go. */
const MEMORY_MAX_BYTES = 16 * 1024 * 1024;
const FILES_MAX_BYTES = 256 * 1024 * 1024;
const OUTPUTS_MAX = 1_000;
const END_MS = 2_000;

export class Commands implements AsyncDisposable {
  readonly #parts: CommandsParts;
  readonly #records: Records;
  readonly #pipes: PipeStore;
  /** In the order in which they began. */
  readonly #commands = new Map<string, Command>();
  readonly #starting = new Map<string, Promise<Command>>();
  /** Those that have ended and whose outputs are kept. */
  readonly #holding = new Set<Command>();
  #running = 0;
  #retiring: Promise<void> = Promise.resolve();
  #isClosed = false;
  #lastActiveAtMs = 0;

  constructor(parts: CommandsParts) {
    const { folder, logger } = parts;
    this.#parts = parts;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#pipes = new PipeStore(join(folder, 'pipes'));
    this.#records = new Records(join(folder, 'commands.jsonl'), logger);
    for (const record of this.#records.load()) this.#restore(record);
  }

  get running(): number {
    return this.#running;
  }

  get lastActiveAtMs(): number {
    let latest = this.#lastActiveAtMs;
    if (this.#running === 0) return latest;
    for (const command of this.#commands.values())
      if (command.outcome === undefined) latest = Math.max(latest, command.lastActiveAtMs);
    return latest;
  }

  /** In the order in which they began. */
  list(): readonly Command[] {
    return [...this.#commands.values()];
  }

  get(id: string): Command {
    const command = this.#commands.get(id);
    if (command !== undefined) return command;
    throw new AilsdError('NOT_FOUND', 'there is no such command');
  }

  /** Runs it, or finds the one that has its id: then nothing is run. */
  async run(wanted: NewCommand): Promise<{ readonly command: Command; readonly isFresh: boolean }> {
    const { id } = wanted;
    const known = id === undefined ? undefined : this.#commands.get(id);
    if (known !== undefined) return { command: known, isFresh: false };
    const starting = id === undefined ? undefined : this.#starting.get(id);
    if (starting !== undefined) return { command: await starting, isFresh: false };
    const own = id ?? newId('command', this.#parts.random);
    const started = this.#start(own, wanted);
    this.#starting.set(own, started);
    try {
      return { command: await started, isFresh: true };
    } finally {
      this.#starting.delete(own);
    }
  }

  /** Ends all programs at once; outcomes stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const late = new AbortController();
    const ends = this.list().map((command) => command.end('lease'));
    await Promise.race([
      Promise.all(ends),
      this.#parts.clock.sleep(END_MS, late.signal).catch(() => undefined),
    ]);
    late.abort();
    await this.#retiring;
    this.#records[Symbol.dispose]();
    await this.#pipes[Symbol.asyncDispose]();
  }

  async #start(id: CommandId, wanted: NewCommand): Promise<Command> {
    const { maxCommands, clock, logger } = this.#parts;
    if (this.#isClosed) throw new AilsdError('BACKEND_UNAVAILABLE', 'the sandbox is stopping');
    if (maxCommands > 0 && this.#running >= maxCommands)
      throw new AilsdError('RATE_LIMITED', `a sandbox may run ${maxCommands} commands at a time`, {
        details: { retry_after_ms: 1_000 },
      });
    this.#running += 1;
    const record = { id, argv: [...wanted.argv], started_at: clock.now() };
    this.#records.write(record);
    try {
      const command = await this.#launch(record, wanted);
      this.#remember(command);
      logger.info('command started', { command_id: id });
      return command;
    } catch (error) {
      this.#running -= 1;
      this.#records.write({ ...record, argv: [], forgotten: true });
      throw error;
    }
  }

  async #launch(record: CommandRecord, wanted: NewCommand): Promise<Command> {
    const { launcher, clock, env } = this.#parts;
    const { id, started_at: startedAtMs } = record;
    const { terminal } = wanted;
    const before = launcher.outOfMemoryKills().catch(() => undefined);
    const [file = '', ...args] = wanted.argv;
    const launch = await launchIn(launcher, {
      argv: [file, ...args],
      cwd: wanted.cwd,
      env: {
        ...env,
        ...wanted.env,
        [COMMAND_VARIABLE]: id,
        ...(terminal === undefined ? {} : { TERM: terminal.term }),
      },
      kind: terminal === undefined ? 'command' : 'shell',
    });
    const pipes = terminal === undefined ? await this.#pipes.take() : undefined;
    if (this.#isClosed) {
      closePipes(pipes);
      throw new AilsdError('BACKEND_UNAVAILABLE', 'the sandbox is stopping');
    }
    const command: Command = new Command({
      id,
      argv: shorten(wanted.argv),
      logs: {
        stdout: this.#log(id, 'stdout', wanted, () => command.pace('stdout')),
        stderr: this.#log(id, 'stderr', wanted, () => command.pace('stderr')),
      },
      startedAtMs,
      clock,
      judge: async (end, by) => {
        const { stdout, stderr } = command.logs;
        return toOutcome({
          end,
          by,
          memoryKills: mayBeKilled(end) ? await this.#memoryKillsSince(before) : 0,
          stdoutSha256: stdout.digest(),
          stderrSha256: stderr.digest(),
        });
      },
    });
    const { events } = command;
    const common = { launcher, launch, mark: id, events };
    const program: Program =
      terminal === undefined
        ? new PipedProgram({ ...common, pipes, name: file })
        : new TerminalProgram({ ...common, size: terminal.size });
    command.begin(program, wanted.timeoutMs);
    command.ended.then(() => this.#ended(command, wanted.keeps));
    return command;
  }

  #log(id: CommandId, stream: StreamName, wanted: NewCommand, onRoom: () => void): OutputLog {
    const { limits, keeps } = wanted;
    return new OutputLog({
      path: this.#path(id, stream),
      limitBytes: limits[stream],
      keeps,
      onRoom,
    });
  }

  async #memoryKillsSince(before: Promise<number | undefined>): Promise<number> {
    const after = await this.#parts.launcher.outOfMemoryKills().catch(() => undefined);
    return (after ?? 0) - ((await before) ?? 0);
  }

  #remember(command: Command): void {
    this.#commands.set(command.id, command);
    for (const oldest of this.#commands.values()) {
      if (this.#commands.size <= COMMANDS_MAX) break;
      if (oldest.outcome === undefined) continue;
      this.#commands.delete(oldest.id);
      this.#holding.delete(oldest);
      this.#later(() => removeOutputs(oldest));
    }
  }

  #ended(command: Command, keeps: 'all' | 'unread'): void {
    this.#running -= 1;
    this.#lastActiveAtMs = Math.max(this.#lastActiveAtMs, command.endedAtMs ?? 0);
    const record = toRecord(command);
    this.#records.write(record);
    const { outcome } = command;
    const { clock, logger } = this.#parts;
    logger.info('command ended', {
      command_id: command.id,
      ...outcome,
      duration_ms: clock.now() - command.startedAtMs,
    });
    this.#later(() => this.#retire(command, keeps));
    if (this.#records.isLong) this.#records.rewrite(this.list().map(toRecord));
  }

  /** One after the other. */
  #later(work: () => Promise<void>): void {
    this.#retiring = this.#retiring.then(work).catch((error: unknown) => {
      this.#parts.logger.warn('an output could not be put away', { error });
    });
  }

  async #retire(command: Command, keeps: 'all' | 'unread'): Promise<void> {
    const { stdout, stderr } = command.logs;
    if (keeps === 'all') {
      await shrinkOutputs(command);
      if (stdout.stored ?? stderr.stored) this.#records.write(toRecord(command));
    }
    if (sizeOf(command) === 0) return;
    this.#holding.add(command);
    let memoryBytes = 0;
    let fileBytes = 0;
    let count = 0;
    for (const ended of [...this.#holding].reverse()) {
      count += 1;
      for (const log of Object.values(ended.logs)) {
        memoryBytes += log.memoryBytes;
        if (memoryBytes > MEMORY_MAX_BYTES && log.memoryBytes > 0) await log.shrink();
        fileBytes += log.fileBytes;
        if (fileBytes > FILES_MAX_BYTES || count > OUTPUTS_MAX) await log.remove();
      }
      if (sizeOf(ended) === 0) this.#holding.delete(ended);
    }
  }

  #restore(record: CommandRecord): void {
    const { clock, logger } = this.#parts;
    const { id, argv, started_at: startedAtMs, ended_at: endedAtMs, outcome } = record;
    const log = (stream: StreamName): OutputLog =>
      OutputLog.stored(this.#path(id, stream), record[stream] ?? NOTHING_STORED);
    const parts = {
      id,
      argv,
      startedAtMs,
      clock,
      logs: { stdout: log('stdout'), stderr: log('stderr') },
      judge: async (_: ProgramEnd) => UNSEEN,
    };
    const command = Command.past(parts, outcome ?? UNSEEN, endedAtMs ?? clock.now());
    this.#commands.set(id, command);
    if (sizeOf(command) > 0) this.#holding.add(command);
    if (outcome !== undefined) return;
    logger.warn('the end of a command was not seen', { command_id: id });
    this.#records.write(toRecord(command));
  }

  /** A caller chooses ids, and so no names of files. */
  #path(id: CommandId, stream: StreamName): string {
    const name = createHash('sha256').update(id).digest('hex').slice(0, 32);
    return join(this.#parts.folder, `${name}.${stream}`);
  }
}

const NOTHING_STORED = { start: 0, end: 0, bytes: 0 };

/** A folder that is not there is the request's fault. */
async function launchIn(launcher: Launcher, request: LaunchRequest): Promise<Launch> {
  try {
    return await launcher.launch(request);
  } catch (cause) {
    if (!(cause instanceof AilsdError) || cause.code !== 'NOT_FOUND') throw cause;
    if (cause.details['field'] !== 'cwd')
      throw new AilsdError('BACKEND_UNAVAILABLE', 'the sandbox is not running', { cause });
    throw new AilsdError('INVALID_REQUEST', cause.message, { details: { field: 'cwd' }, cause });
  }
}

function toRecord(command: Command): CommandRecord {
  const { id, argv, startedAtMs, endedAtMs, outcome, logs } = command;
  return {
    id,
    argv: [...argv],
    started_at: startedAtMs,
    ...(endedAtMs === undefined ? {} : { ended_at: endedAtMs }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(logs.stdout.stored === undefined ? {} : { stdout: logs.stdout.stored }),
    ...(logs.stderr.stored === undefined ? {} : { stderr: logs.stderr.stored }),
  };
}

function sizeOf({ logs }: Command): number {
  return Object.values(logs).reduce((sum, log) => sum + log.memoryBytes + log.fileBytes, 0);
}

async function shrinkOutputs({ logs }: Command): Promise<void> {
  for (const log of Object.values(logs)) await log.shrink();
}

async function removeOutputs({ logs }: Command): Promise<void> {
  for (const log of Object.values(logs)) await log.remove();
}
