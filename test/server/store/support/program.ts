/** A TypeScript program of the tests as a real process: bundled once, started as often as wanted, killed at will. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('../../../../', import.meta.url));

export interface Program extends AsyncDisposable {
  start(...args: readonly string[]): Run;
}

export interface Run {
  readonly process: ChildProcess;
  /** What it printed so far, one entry a whole line. */
  readonly lines: readonly string[];
  /** Resolves with the signal or status it ended by. */
  readonly ended: Promise<string>;
  /** Resolves when it has printed that many lines, or ended. */
  printed(lines: number): Promise<void>;
}

export async function bundleProgram(file: string): Promise<Program> {
  // Beside node_modules, where the packages it imports are found.
  const cache = join(root, 'node_modules', '.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'program-'));
  const made = await rolldown({
    cwd: root,
    input: { program: file },
    platform: 'node',
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    transform: { target: 'node20' },
    // Packages find their own parts; what the lowering needs goes in.
    external: ['libsql', 'pg'],
    logLevel: 'warn',
  });
  await made.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name].mjs',
  });
  await made.close();
  return {
    start: (...args) => start(join(folder, 'program.mjs'), args),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

export const here = dirname(fileURLToPath(import.meta.url));

function start(file: string, args: readonly string[]): Run {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  let rest = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const pieces = `${rest}${chunk.toString()}`.split('\n');
    rest = pieces.pop() ?? '';
    lines.push(...pieces);
    for (const listener of listeners) listener();
  });
  const ended = new Promise<string>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? String(code)));
  });
  const printed = (wanted: number) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (lines.length < wanted) return;
        listeners.delete(look);
        resolve();
      };
      listeners.add(look);
      void ended.then(() => resolve());
      look();
    });
  return { process: child, lines, ended, printed };
}
