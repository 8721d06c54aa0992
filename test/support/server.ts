/** A real server program on loopback with a data folder of its own, for tests that need somebody to log in to. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { type CliOptions, cleanEnvironment, runProgram } from './cli.js';

export const SERVER_PROGRAM = join(
  import.meta.dirname,
  '..',
  '..',
  'dist',
  'server',
  'ailsd-server.mjs',
);

export interface ServerOptions {
  readonly users?: readonly {
    readonly name: string;
    readonly password: string;
    readonly scopes?: readonly string[];
    readonly tenant?: string;
  }[];
  readonly deviceCodeSeconds?: number;
  /** A store elsewhere, such as `postgres://…`; by default a file in the data folder. */
  readonly store?: string;
  /** Goes into `server.json` as it is. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: CliOptions['env'];
}

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** The data folder. */
  readonly dir: string;
  /** The first service client, which may do everything. */
  readonly admin: { readonly clientId: string; readonly clientSecret: string };
  /** Runs another operation on the data folder, as `ailsd server …` does, and gives its answer. */
  operate(operation: string, input?: object): Promise<Answer>;
  /** Everything it logged so far. */
  log(): string;
  /** Ends it and checks that it ended well: no error code, no listener, nothing but JSON in the log. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again, at the same place. */
  start(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers as any script would
export type Answer = Readonly<Record<string, any>>;

export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), 'ailsd-server-'));
  const dir = join(folder, 'data');
  try {
    const operate = (operation: string, input: object = {}) =>
      runOperation(operation, { dir, ...input }, options.env);
    const made = await operate('init', { ...(options.store && { store: options.store }) });
    const admin = { clientId: made['client_id'], clientSecret: made['client_secret'] };
    if (options.config !== undefined) addToConfig(dir, options.config);
    await Promise.all((options.users ?? []).map((user) => operate('user-add', user)));
    const server = new Running(dir, options);
    await server.start();
    return {
      dir,
      admin,
      operate,
      get url() {
        return server.url;
      },
      get port() {
        return server.port;
      },
      get pid() {
        return server.pid;
      },
      log: () => server.log,
      stop: (signal) => server.stop(signal),
      start: () => server.start(),
      async [Symbol.asyncDispose]() {
        try {
          await server.stop();
          checkFolder(dir);
        } finally {
          rmSync(folder, { recursive: true, force: true });
        }
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/** One document in, one out; what it says on stderr becomes the error's message. */
export async function runOperation(
  operation: string,
  input: object,
  env?: CliOptions['env'],
): Promise<Answer> {
  const { code, stdout, stderr } = await runProgram(process.execPath, [SERVER_PROGRAM, operation], {
    input: `${JSON.stringify(input)}\n`,
    ...(env && { env }),
  });
  if (code !== 0) throw new Error(`${operation} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

class Running {
  readonly #dir: string;
  readonly #options: ServerOptions;
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
  #ended: Promise<number | null> | undefined;
  url = '';
  port = 0;
  pid = 0;
  log = '';

  constructor(dir: string, options: ServerOptions) {
    this.#dir = dir;
    this.#options = options;
  }

  async start(): Promise<void> {
    const { env, deviceCodeSeconds } = this.#options;
    const child = spawn(process.execPath, [SERVER_PROGRAM, 'start'], {
      cwd: tmpdir(),
      env: cleanEnvironment({
        ...(deviceCodeSeconds && { AILSD_SERVER_DEVICE_CODE_SECONDS: String(deviceCodeSeconds) }),
        ...env,
      }),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#ended = new Promise((resolve) => child.on('close', (code) => resolve(code)));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.log += text;
    });
    // The stream stays open: its end is how the program learns that the tests are gone.
    child.stdin.on('error', () => {});
    child.stdin.write(`${JSON.stringify({ dir: this.#dir, listen: `127.0.0.1:${this.port}` })}\n`);
    const { url, port, pid } = await this.#ready(child.stdout);
    Object.assign(this, { url, port, pid });
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    const code = await this.#ended;
    clearTimeout(late);
    if (signal === 'SIGKILL') return;
    if (code !== 0) throw new Error(`the server ended with ${code}:\n${this.log}`);
    for (const line of this.log.split('\n')) {
      if (line !== '' && !line.startsWith('{')) throw new Error(`not a log line: ${line}`);
    }
    if (await answers(this.port)) throw new Error('something still listens on its port');
  }

  /** Its first line, or the end of it all. */
  #ready(stdout: Readable): Promise<{ url: string; port: number; pid: number }> {
    return new Promise((resolve, reject) => {
      let text = '';
      stdout.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        const end = text.indexOf('\n');
        if (end !== -1) resolve(JSON.parse(text.slice(0, end)));
      });
      this.#ended?.then((code) => {
        this.#child = undefined;
        reject(new Error(`the server did not start (${code}):\n${this.log}`));
      });
    });
  }
}

const STOP_MS = 10_000;

function addToConfig(dir: string, config: object): void {
  const path = join(dir, 'server.json');
  const before: object = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...before, ...config }));
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

function checkFolder(dir: string): void {
  const left = readdirSync(dir).filter(
    (name) => !/^(server\.json|store\.db(-wal|-shm)?)$/.test(name),
  );
  if (left.length > 0) throw new Error(`left in the data folder: ${left.join(', ')}`);
}
