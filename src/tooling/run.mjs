// Runs a TypeScript file of this repository: bundles it to a temporary module beside node_modules and imports that.
// Usage: node src/tooling/run.mjs FILE [ARGS…]
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { external, shared } from './bundling.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const [file, ...rest] = process.argv.slice(2);
const entry = resolve(file);

await mkdir(join(root, 'node_modules', '.cache'), { recursive: true });
const folder = await mkdtemp(join(root, 'node_modules', '.cache', 'run-'));

const made = await rolldown({
  ...shared,
  cwd: root,
  input: { run: entry },
  external: external.packages,
});
await made.write({
  dir: folder,
  format: 'esm',
  entryFileNames: '[name].mjs',
  chunkFileNames: '[name].mjs',
});
await made.close();

process.argv = [process.argv[0], entry, ...rest];
try {
  await import(pathToFileURL(join(folder, 'run.mjs')).href);
} finally {
  await rm(folder, { recursive: true, force: true });
}
