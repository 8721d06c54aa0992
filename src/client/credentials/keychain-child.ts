/** The keychain in a child process that can be killed: nothing here ever waits longer than its budget. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../base/clock.js';
import { createDeferred, type Deferred } from '../../base/deferred.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Keychain, KeychainEntry } from './keychain.js';
import { Lines, parseAnswer, toLine } from './keychain-wire.js';
import { whyNoBus } from './session-bus.js';

export interface KeychainOptions {
  /** The built program `probe-keychain`. */
  readonly program: string;
  readonly variable: (name: string) => string | undefined;
  readonly platform: NodeJS.Platform;
  readonly userId: number | undefined;
  readonly clock: Clock;
  /** All waiting within a minute together. */
  readonly budgetMs?: number | undefined;
}

/** What a command may spend on waiting for a keychain, all calls together: under 3 s also where timers come late. */
export const KEYCHAIN_BUDGET_MS = 2_200;
const WINDOW_MS = 60_000;

/** What a keychain's client needs to find it. Nothing else goes to the child, tokens in variables least of all. */
const PASSED = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'TMPDIR', 'DISPLAY', 'WAYLAND_DISPLAY'],
  ...['DBUS_SESSION_BUS_ADDRESS', 'XDG_RUNTIME_DIR', 'XDG_DATA_HOME', 'XDG_CURRENT_DESKTOP'],
  ...['SystemRoot', 'windir', 'USERPROFILE', 'USERNAME', 'APPDATA', 'LOCALAPPDATA', 'TEMP', 'TMP'],
];

type Child = ChildProcessByStdio<Writable, Readable, null>;

export class ChildKeychain implements Keychain, Disposable {
  readonly #options: KeychainOptions;
  readonly #waiting = new Map<number, Deferred<unknown>>();
  /** There from the first question on, until it fails or is ended. */
  #child: Promise<Child> | undefined;
  #asked = 0;
  #spentMs = 0;
  #windowBegan: number;

  constructor(options: KeychainOptions) {
    this.#options = options;
    this.#windowBegan = options.clock.monotonic();
  }

  async getPassword(service: string, account: string): Promise<string | null> {
    return textOrNull(await this.#ask('getPassword', service, account));
  }

  async setPassword(service: string, account: string, password: string): Promise<void> {
    await this.#ask('setPassword', service, account, password);
  }

  async deletePassword(service: string, account: string): Promise<boolean> {
    return (await this.#ask('deletePassword', service, account)) === true;
  }

  async findCredentials(service: string): Promise<readonly KeychainEntry[]> {
    const found = await this.#ask('findCredentials', service);
    return Array.isArray(found) ? found.filter(isEntry) : [];
  }

  async findPassword(service: string): Promise<string | null> {
    return textOrNull(await this.#ask('findPassword', service));
  }

  [Symbol.dispose](): void {
    this.#end(unavailable('the keychain was closed'));
  }

  async #ask(call: keyof Keychain, ...given: string[]): Promise<unknown> {
    const { clock } = this.#options;
    const begin = clock.monotonic();
    if (begin - this.#windowBegan > WINDOW_MS) {
      this.#windowBegan = begin;
      this.#spentMs = 0;
    }
    const timer = new AbortController();
    const { budgetMs = KEYCHAIN_BUDGET_MS } = this.#options;
    const late = clock.sleep(Math.max(budgetMs - this.#spentMs, 0), timer.signal);
    try {
      return await Promise.race([
        this.#send(call, given),
        late.then(() => {
          const error = unavailable('it never answered');
          this.#end(error);
          throw error;
        }),
      ]);
    } finally {
      timer.abort();
      this.#spentMs += clock.monotonic() - begin;
    }
  }

  async #send(call: keyof Keychain, given: readonly string[]): Promise<unknown> {
    this.#child ??= this.#start();
    const starting = this.#child;
    const child = await starting;
    if (this.#child !== starting) throw unavailable('it never answered');
    this.#asked += 1;
    const answer = createDeferred<unknown>();
    this.#waiting.set(this.#asked, answer);
    child.stdin.write(toLine({ id: this.#asked, call, given }));
    return answer.promise;
  }

  async #start(): Promise<Child> {
    const { platform, variable, userId, clock, program } = this.#options;
    if (platform === 'linux') {
      const address = variable('DBUS_SESSION_BUS_ADDRESS');
      const why = await whyNoBus({ address, userId, clock });
      if (why !== undefined) throw unavailable(why);
    }
    const env = Object.fromEntries(PASSED.map((name) => [name, variable(name)]));
    const child = spawn(process.execPath, [program, 'serve', String(process.pid)], {
      env,
      stdio: ['pipe', 'pipe', 'ignore'],
      windowsHide: true,
    });
    this.#listen(child);
    return child;
  }

  #listen(child: Child): void {
    const lines = new Lines();
    child.stdout.setEncoding('utf8');
    child.stdout.on('data', (text: string) => {
      try {
        for (const line of lines.push(text)) this.#settle(line);
      } catch (error) {
        this.#end(unavailable('it answered nonsense', error));
      }
    });
    // After we ended it ourselves this finds nothing to end.
    child.on('error', (error) => this.#end(unavailable('its driver did not start', error)));
    child.on('close', () => this.#end(unavailable('its driver ended')));
    // A write to a child that has ended; its `close` says so.
    child.stdin.on('error', () => undefined);
    // Whoever waits for an answer has a timer; the child alone must not keep the process.
    for (const part of [child, child.stdin, child.stdout]) {
      if ('unref' in part && typeof part.unref === 'function') part.unref();
    }
  }

  #settle(line: string): void {
    const answer = parseAnswer(line);
    if (answer === undefined) throw new Error('that is no answer');
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ('error' in answer) waiting?.reject(unavailable('it is locked or absent', answer.error));
    else waiting?.resolve(answer.value);
  }

  #end(error: AilsdError): void {
    this.#child?.then(
      (child) => child.kill('SIGKILL'),
      () => undefined,
    );
    this.#child = undefined;
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }
}

/** All of a driver's errors look alike; its own words are for --debug. */
function unavailable(why: string, cause?: unknown): AilsdError {
  return new AilsdError('KEYCHAIN_UNAVAILABLE', `no keychain: ${why}`, {
    ...(cause === undefined ? {} : { internal: String(cause) }),
  });
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function isEntry(value: unknown): value is KeychainEntry {
  if (typeof value !== 'object' || value === null) return false;
  if (!('account' in value) || !('password' in value)) return false;
  return typeof value.account === 'string' && typeof value.password === 'string';
}
