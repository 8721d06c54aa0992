/** Bundles a program of the tests, so that it can run as a process of its own, also under another user. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rolldown } from 'rolldown';
import { external, shared } from '../../../../src/tooling/bundling.mjs';

const ROOT = join(import.meta.dirname, '..', '..', '..', '..');

export interface BuiltProgram extends Disposable {
  readonly path: string;
  readonly folder: string;
}

/** As the command line is built: CommonJS, split where it is loaded lazily. Beside node_modules, for native packages. */
export async function buildProgram(entry: string): Promise<BuiltProgram> {
  const cache = join(ROOT, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'test-program-'));
  chmodSync(folder, 0o755);
  const bundle = await rolldown({
    ...shared,
    platform: 'node',
    logLevel: 'warn',
    cwd: ROOT,
    input: entry,
    external: external.native,
  });
  await bundle.write({
    dir: folder,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: 'chunk-[name].cjs',
  });
  await bundle.close();
  return {
    folder,
    path: join(folder, `${basename(entry, '.ts')}.cjs`),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export function programFile(name: string): string {
  return join(import.meta.dirname, '..', 'programs', `${name}.ts`);
}

/** The child that talks to the keychain, as it is shipped. */
export const KEYCHAIN_PROGRAM = join(ROOT, 'src', 'client', 'credentials', 'probe-keychain.ts');
