// Bundles the command line (CommonJS, split by command: the fastest thing Node can start) and the SDK (an ES module).
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { external, shared } from './bundling.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** The programs: what `bin/` starts, and the probes `doctor` runs in a child it can kill. */
const programs = {
  ailsd: 'src/cli/main.ts',
  'probe-keychain': 'src/client/credentials/probe-keychain.ts',
  'probe-pty': 'src/server/sandboxd/probe-pty.ts',
};

export async function build() {
  await Promise.all([
    rm(join(root, 'dist', 'cli'), { recursive: true, force: true }),
    rm(join(root, 'dist', 'sdk'), { recursive: true, force: true }),
  ]);
  await bundle(
    {
      ...shared,
      cwd: root,
      input: programs,
      external: external.native,
      plugins: [withoutChildProcess()],
    },
    {
      dir: 'dist/cli',
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: 'chunk-[name].cjs',
      minify: { compress: true, mangle: false, codegen: true },
    },
  );
  await bundle(
    { ...shared, cwd: root, input: { index: 'src/index.ts' }, external: external.packages },
    { dir: 'dist/sdk', format: 'esm', chunkFileNames: 'chunks/[name].js' },
  );
}

/**
 * commander loads `child_process` (and with it `net`, `dgram` and all of `stream`: 3 ms) for subcommands that are
 * executables of their own. We have none.
 */
function withoutChildProcess() {
  const id = '\0no-executable-subcommands';
  return {
    name: 'commander-without-child-process',
    /** @type {(source: string, importer: string | undefined) => string | undefined} */
    resolveId: (source, importer) =>
      source === 'node:child_process' && /[\\/]commander[\\/]/.test(importer ?? '')
        ? id
        : undefined,
    /** @type {(loaded: string) => string | undefined} */
    load: (loaded) => (loaded === id ? 'export const spawn = undefined;' : undefined),
  };
}

async function bundle(input, output) {
  const made = await rolldown(input);
  await made.write(output);
  await made.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build();
