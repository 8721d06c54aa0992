/** Runs the built command line as a script would: plain pipes, an empty home, no variables but those given. */
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const BIN = join(import.meta.dirname, '..', '..', 'bin', 'ailsd.js');

export interface CliOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly input?: string;
  /** Arguments for node itself, before the program. */
  readonly node?: readonly string[];
  /** Runs under this user id, which is not root: permissions mean something then. */
  readonly uid?: number;
  /** Called with the running process, e.g. to send it a signal. */
  readonly started?: (pid: number) => void;
}

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

const TIMEOUT_MS = 60_000;

export function ailsd(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const program = options.uid === undefined ? BIN : publicCopy();
  return runProgram(process.execPath, [...(options.node ?? []), program, ...args], options);
}

export function runProgram(
  program: string,
  args: readonly string[],
  options: CliOptions = {},
): Promise<CliResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd ?? tmpdir(),
      env: cleanEnvironment(options.env),
      ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      resolve({
        code,
        signal,
        stdout: Buffer.concat(out).toString(),
        stderr: Buffer.concat(err).toString(),
      });
    });
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
    if (child.pid !== undefined) options.started?.(child.pid);
  });
}

let copied: string | undefined;

/** The program where every user can read it; the checkout may be in somebody's closed home. */
function publicCopy(): string {
  if (copied === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'ailsd-public-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o755);
    for (const part of ['bin', 'dist/cli', 'package.json']) {
      cpSync(join(BIN, '..', '..', part), join(folder, part), { recursive: true });
    }
    copied = join(folder, 'bin', 'ailsd.js');
  }
  return copied;
}

/** Nothing of the tester's own settings reaches the program. */
export function cleanEnvironment(extra: CliOptions['env'] = {}): Record<string, string> {
  const base: Record<string, string | undefined> = {
    PATH: process.env['PATH'],
    HOME: '/nonexistent',
    ...extra,
  };
  const entries = Object.entries(base).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return Object.fromEntries(entries);
}

/** A folder that is gone when the test is. */
export function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'ailsd-test-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
