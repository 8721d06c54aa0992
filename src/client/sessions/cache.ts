/** Remembers which sandbox a thread had, for the next process: one small file a thread, ours alone, never a token in it. */
import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.js';
import { AilsdError } from '../../protocol/errors.js';
import { ID_PATTERN, type SandboxId, type SessionId } from '../../protocol/ids.js';
import { makeFolder, readPrivateFile, uniqueName } from '../credentials/private-file.js';

export interface CacheKey {
  readonly server: string;
  readonly account: string;
  readonly thread: string;
}

/** Hints, all of it: whoever uses one asks the server, which decides. */
export interface Remembered {
  readonly sessionId: SessionId;
  readonly sandboxId: SandboxId;
  readonly provider: string;
  readonly httpUrl: string;
  readonly wsUrl: string;
}

export interface CacheOptions {
  /** Absent: nothing is remembered. */
  readonly folder: string | undefined;
  readonly userId: number | undefined;
  readonly clock: Clock;
  readonly trace: (text: string) => void;
}

export const MOST_REMEMBERED = 256;

/** Nothing here ever fails for its caller: what can't be read is not remembered, what can't be written is not kept. */
export class SessionCache {
  readonly #options: CacheOptions;
  readonly #folder: string | undefined;

  constructor(options: CacheOptions) {
    this.#options = options;
    this.#folder = options.folder === undefined ? undefined : join(options.folder, FOLDER);
  }

  get(key: CacheKey): Remembered | undefined {
    return this.#attempt('read', (path) => {
      const text = readPrivateFile({ path, userId: this.#options.userId }, fileName(key));
      return text === undefined ? undefined : parseEntry(text, key)?.remembered;
    });
  }

  set(key: CacheKey, remembered: Remembered): void {
    this.#attempt('written', (path) => {
      const now = this.#options.clock.now();
      const folder = { path, userId: this.#options.userId };
      const text = readPrivateFile(folder, fileName(key));
      const before = text === undefined ? undefined : parseEntry(text, key);
      const isOld = now - (before?.savedAtMs ?? 0) > REWRITE_MS;
      if (before !== undefined && !isOld && isSame(before.remembered, remembered)) return;
      makeFolder(folder);
      if (text === undefined) this.#makeRoom(path);
      replace(join(path, fileName(key)), toText(key, remembered, now));
    });
  }

  forget(key: CacheKey): void {
    this.#attempt('removed', (path) => rmSync(join(path, fileName(key)), { force: true }));
  }

  #attempt<T>(what: string, work: (path: string) => T): T | undefined {
    if (this.#folder === undefined) return undefined;
    try {
      return work(this.#folder);
    } catch (error) {
      const why = error instanceof AilsdError || error instanceof Error ? error.message : '';
      this.#options.trace(`the session cache cannot be ${what}: ${why}`);
      return undefined;
    }
  }

  /** The least recently written go first, and what killed writers left. */
  #makeRoom(path: string): void {
    const names = readdirSync(path);
    if (names.length < MOST_REMEMBERED) return;
    const byAge = names
      .map((name) => ({ name, at: modifiedMs(join(path, name)) }))
      .sort((left, right) => left.at - right.at);
    for (const { name } of byAge.slice(0, names.length - MOST_REMEMBERED + 1)) {
      rmSync(join(path, name), { force: true });
    }
  }
}

const FOLDER = 'sessions';
/** One that is in daily use is written about once a day, so that it is not the oldest. */
const REWRITE_MS = 86_400_000;
const MOST_CHARACTERS = 4_096;

/** Two halves of FNV-1a: no name of a thread or account gets near a path. Two keys of one name only overwrite each other. */
function fileName({ server, account, thread }: CacheKey): string {
  const text = JSON.stringify([server, account, thread]);
  let low = 0x811c9dc5;
  let high = 0xcbf29ce4;
  for (let at = 0; at < text.length; at += 1) {
    low = Math.imul(low ^ text.charCodeAt(at), 0x01000193);
    high = Math.imul(high ^ text.charCodeAt(text.length - 1 - at), 0x01000193);
  }
  return `${(low >>> 0).toString(36)}-${(high >>> 0).toString(36)}.json`;
}

function toText(key: CacheKey, remembered: Remembered, nowMs: number): string {
  const { sessionId, sandboxId, provider, httpUrl, wsUrl } = remembered;
  return JSON.stringify({
    ...key,
    session_id: sessionId,
    sandbox_id: sandboxId,
    provider,
    http_base_url: httpUrl,
    ws_base_url: wsUrl,
    saved_at: nowMs,
  });
}

interface Entry {
  readonly remembered: Remembered;
  readonly savedAtMs: number;
}

function parseEntry(text: string, key: CacheKey): Entry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  const isOurs =
    fields['server'] === key.server &&
    fields['account'] === key.account &&
    fields['thread'] === key.thread;
  const sessionId = short(fields['session_id']);
  const sandboxId = short(fields['sandbox_id']);
  const provider = short(fields['provider']);
  const httpUrl = short(fields['http_base_url']);
  const wsUrl = short(fields['ws_base_url']);
  const savedAtMs = fields['saved_at'];
  if (!isOurs || sessionId === undefined || sandboxId === undefined) return undefined;
  if (!ID_PATTERN.test(sessionId) || !ID_PATTERN.test(sandboxId)) return undefined;
  if (provider === undefined || httpUrl === undefined || wsUrl === undefined) return undefined;
  if (typeof savedAtMs !== 'number') return undefined;
  const ids = { sessionId: sessionId as SessionId, sandboxId: sandboxId as SandboxId };
  return { remembered: { ...ids, provider, httpUrl, wsUrl }, savedAtMs };
}

function short(value: unknown): string | undefined {
  const isShort = typeof value === 'string' && value !== '' && value.length <= MOST_CHARACTERS;
  return isShort ? value : undefined;
}

function isSame(left: Remembered, right: Remembered): boolean {
  return (
    left.sessionId === right.sessionId &&
    left.sandboxId === right.sandboxId &&
    left.provider === right.provider &&
    left.httpUrl === right.httpUrl &&
    left.wsUrl === right.wsUrl
  );
}

/** Whole or not at all. Not synced: after a power cut a memory may be gone, and nobody minds. */
function replace(path: string, text: string): void {
  const temporary = `${path}.${uniqueName()}.tmp`;
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function modifiedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
