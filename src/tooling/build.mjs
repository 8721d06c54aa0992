// Bundles the programs: the command line (CommonJS, split by command: the fastest thing Node can start), the probes it runs in
// children, the server, and the SDK. Each is a bundle of its own, so that none shares chunks with another.
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { external, shared } from './bundling.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** What `doctor` and the keychain run in a child that can be killed. */
const probes = {
  'probe-keychain': 'src/client/credentials/probe-keychain.ts',
  'probe-pty': 'src/server/sandboxd/probe-pty.ts',
};

/**
 * Every file costs a third of a millisecond to find and open. So what every command needs is one chunk, with all it imports; what a
 * valid login in the file store needs is another, for scripts run `ailsd token` in loops; what one request needs is a third,
 * what it takes to get hold of a sandbox a fourth; and what only its options need is apart, for commands that merely have them.
 */
const groups = [
  {
    name: 'frame',
    priority: 2,
    test: /src.cli.(context|program|report|usage-error|variables)\.ts$/,
  },
  {
    name: 'access',
    priority: 1,
    test: /src.(client.auth.(access|claims|freshness)|client.credentials.(choose-store|credential|credential-set|file-store|headless|private-file)|cli.login.auth-world)\.ts$/,
  },
  {
    name: 'words',
    priority: 1,
    test: /src.(protocol.(capabilities|scopes)|cli.login.time-text|cli.sessions.(given-access|options|thread-argument))\.ts$/,
  },
  {
    name: 'session',
    priority: 0,
    test: /src.(client.sessions.(asker|remembered)|cli.sessions.(negotiate|session-world))\.ts$/,
  },
  { name: 'request', priority: 0, test: /src.client.http.(http|proxy)\.ts$/ },
];

const commonJs = {
  dir: 'dist/cli',
  format: 'cjs',
  entryFileNames: '[name].cjs',
  // Names are kept: they are what a stack trace has to say.
  minify: { compress: true, mangle: false, codegen: true },
};

export async function build() {
  await Promise.all(
    ['cli', 'server', 'sdk'].map((name) =>
      rm(join(root, 'dist', name), { recursive: true, force: true }),
    ),
  );
  const native = { external: external.native };
  const [chunks] = await Promise.all([
    bundle(
      { ...native, input: { ailsd: 'src/cli/main.ts' }, plugins: [withoutChildProcess()] },
      {
        ...commonJs,
        chunkFileNames: 'chunk-[name].cjs',
        codeSplitting: { groups },
      },
    ),
    bundle({ ...native, input: probes }, { ...commonJs, chunkFileNames: 'probe-chunk-[name].cjs' }),
    bundle(
      {
        input: {
          'ailsd-server': 'src/server/main.ts',
          'ailsd-sandboxd': 'src/server/sandboxd/main.ts',
        },
        external: [...external.native, ...external.server],
      },
      {
        dir: 'dist/server',
        format: 'esm',
        entryFileNames: '[name].mjs',
        chunkFileNames: 'chunk-[name].mjs',
      },
    ),
    bundle(
      { input: { index: 'src/index.ts' }, external: external.packages },
      { dir: 'dist/sdk', format: 'esm', chunkFileNames: 'chunks/[name].js' },
    ),
  ]);
  await writeFile(join(root, 'dist', 'modules.json'), JSON.stringify(modulesOf(chunks), null, 2));
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
  const made = await rolldown({ ...shared, cwd: root, ...input });
  const { output: chunks } = await made.write(output);
  await made.close();
  return chunks;
}

/** Which source files and packages each chunk holds: for the test that lists what a command loads. */
function modulesOf(chunks) {
  const entries = chunks
    .filter((chunk) => chunk.type === 'chunk')
    .map((chunk) => [chunk.fileName, chunk.moduleIds.map((id) => relative(root, id))]);
  return Object.fromEntries(entries);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build();
