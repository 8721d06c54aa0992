/** The local provider with the real daemon program, bundled from source, over a temporary folder. */
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { systemClock } from '../../src/base/clock.js';
import type { SandboxId } from '../../src/protocol/ids.js';
import {
  type LocalOptions,
  type LocalProvider,
  openLocalProvider,
} from '../../src/server/providers/local/local-provider.js';
import { eventually } from './eventually.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

export interface DaemonProgram extends AsyncDisposable {
  readonly path: string;
}

export async function bundleDaemon(): Promise<DaemonProgram> {
  // Beside node_modules, where the packages it imports are found.
  const cache = join(root, 'node_modules', '.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'sandboxd-'));
  const made = await rolldown({
    cwd: root,
    input: { sandboxd: join(root, 'src/server/sandboxd/main.ts') },
    platform: 'node',
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    transform: { target: 'node20' },
    external: ['@lydell/node-pty'],
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
    path: join(folder, 'sandboxd.mjs'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

export interface LocalPlace extends AsyncDisposable {
  readonly dir: string;
  readonly isServing: true;
  provider(options?: Partial<LocalOptions>): Promise<LocalProvider>;
  readonly files: {
    write(id: SandboxId, name: string, text: string): Promise<void>;
    read(id: SandboxId, name: string): Promise<string | undefined>;
  };
  daemonPid(): Promise<number>;
}

export async function openLocalPlace(
  program: DaemonProgram,
  isolation: LocalOptions['isolation'],
): Promise<LocalPlace> {
  const dir = await mkdtemp(join(tmpdir(), 'ailsd-local-'));
  const path = (id: SandboxId, name: string) => join(dir, 'sandboxes', id, 'workspace', name);
  const daemonPid = async (): Promise<number> =>
    Number(JSON.parse(await readFile(join(dir, 'daemon.json'), 'utf8')).pid);
  return {
    dir,
    isServing: true,
    daemonPid,
    provider: (options = {}) =>
      openLocalProvider({
        dir,
        isolation,
        daemonProgram: program.path,
        node: process.execPath,
        clock: systemClock,
        ...options,
      }),
    files: {
      write: (id, name, text) => writeFile(path(id, name), text),
      read: (id, name) => readFile(path(id, name), 'utf8').catch(() => undefined),
    },
    [Symbol.asyncDispose]: async () => {
      const pid = await daemonPid().catch(() => undefined);
      // Without its folder a daemon has nothing to do.
      await rm(dir, { recursive: true, force: true });
      if (pid !== undefined) await eventually(async () => !(await isAlive(pid)));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export async function isAlive(pid: number): Promise<boolean> {
  if (!(await stat(`/proc/${pid}`).catch(() => undefined))) return false;
  return !/^\d+ \(.*\) Z/s.test(
    await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '0 () Z'),
  );
}
