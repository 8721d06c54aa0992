/** What is known of a sandbox's commands, in a file: a line when one begins and a line when it ends. Outlives the daemon. */
import { closeSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs';
import type { Logger } from '../../../base/logger.js';
import { parse } from '../../../protocol/parse.js';
import { type CommandRecord, commandRecord } from '../../../protocol/shapes/sandboxd.js';

/** Commands whose outcome is kept; beyond, the earliest is forgotten. */
export const COMMANDS_MAX = 10_000;
/** Then the file is written anew. */
const LINES_MAX = 4 * COMMANDS_MAX;
/** Of the arguments, what is kept for those who look later. */
const ARGV_MAX_CHARS = 1024;

export class Records implements Disposable {
  readonly #path: string;
  readonly #logger: Logger;
  #file: number | undefined;
  #lines = 0;

  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
  }

  /** In the order in which they began. A line that is torn, as after a crash, is left out. */
  load(): readonly CommandRecord[] {
    const known = new Map<string, CommandRecord>();
    for (const line of readLines(this.#path)) {
      const record = toRecord(line);
      if (record === undefined) continue;
      if (record.forgotten === true) known.delete(record.id);
      else known.set(record.id, record);
    }
    const records = [...known.values()].slice(-COMMANDS_MAX);
    if (records.length > 0) this.rewrite(records);
    return records;
  }

  /** In the kernel's hands when it returns: a daemon that dies right after has not run it in secret. */
  write(record: CommandRecord): void {
    try {
      this.#file ??= openSync(this.#path, 'a', 0o600);
      writeSync(this.#file, `${JSON.stringify({ ...record, argv: shorten(record.argv) })}\n`);
      this.#lines += 1;
    } catch (error) {
      // A full disk must not keep anybody from making room on it.
      this.#logger.warn('a command could not be noted', { command_id: record.id, error });
    }
  }

  get isLong(): boolean {
    return this.#lines > LINES_MAX;
  }

  rewrite(records: readonly CommandRecord[]): void {
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join('');
    try {
      writeFileSync(`${this.#path}.tmp`, text, { mode: 0o600 });
      renameSync(`${this.#path}.tmp`, this.#path);
      this[Symbol.dispose]();
      this.#lines = records.length;
    } catch (error) {
      this.#logger.warn('the list of commands could not be written anew', { error });
    }
  }

  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

function readLines(path: string): readonly string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    return [];
  }
}

function toRecord(line: string): CommandRecord | undefined {
  try {
    const parsed = parse(commandRecord, JSON.parse(line), 'CONFIG_INVALID', '');
    return parsed.ok ? parsed.value : undefined;
  } catch {
    return undefined;
  }
}

export function shorten(argv: readonly string[]): string[] {
  let left = ARGV_MAX_CHARS;
  const kept: string[] = [];
  for (const word of argv) {
    if (left <= 0) break;
    kept.push(word.length <= left ? word : `${word.slice(0, left)}…`);
    left -= word.length + 1;
  }
  return kept;
}
