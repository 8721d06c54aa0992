import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../requirements.js';
import { ailsd } from '../support/cli.js';

/** What a command loads: our own chunks, packages, and the heavy parts of Node. */
let folder = '';
let hook = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ailsd-loads-'));
  hook = join(folder, 'hook.cjs');
  writeFileSync(
    hook,
    `process.on('exit', () => {
      const files = Object.keys(require.cache).filter((file) => file !== __filename);
      const heavy = process.moduleLoadList.map((line) => line.replace('NativeModule ', ''))
        .filter((name) => ['net', 'http', 'https', 'tls', 'child_process', 'stream', 'worker_threads', 'crypto', 'tty'].includes(name));
      require('node:fs').writeSync(2, '\\nLOADED ' + JSON.stringify({ files, heavy }));
    });`,
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function loadedBy(args: string[]): Promise<{ files: string[]; heavy: string[] }> {
  const { stderr } = await ailsd(args, { node: ['--require', hook] });
  const { files, heavy } = JSON.parse(stderr.split('\nLOADED ')[1] ?? '{}');
  return { files: files.map((file: string) => basename(file)), heavy };
}

/** Shared by every command: the entry, the bundler's runtime, and the error table. */
const FRAME = ['ailsd.js', 'ailsd.cjs', 'chunk-rolldown-runtime.cjs', 'chunk-errors.cjs'];

describe('a command loads only what it uses', () => {
  const cases: [string[], string[], string[]][] = [
    [['--help'], [], []],
    [['version'], ['chunk-version.cjs'], []],
    [['config', 'get', 'output'], ['chunk-config.cjs', 'chunk-columns.cjs'], []],
    [['help', 'exit-codes'], ['chunk-help.cjs', 'chunk-columns.cjs'], []],
    [['help', 'version'], ['chunk-help.cjs', 'chunk-columns.cjs', 'chunk-version.cjs'], []],
    [['nonsense'], [], []],
  ];
  it.each(cases)(proves('%j', 'CM-10'), async (args, files, heavy) => {
    const loaded = await loadedBy(args);
    expect(loaded.files.sort()).toEqual([...FRAME, ...files].sort());
    expect(loaded.heavy).toEqual(heavy);
  });

  it(proves('--version loads no program at all', 'CM-10'), async () => {
    expect(await loadedBy(['--version'])).toEqual({
      files: ['ailsd.js', 'package.json'],
      heavy: [],
    });
  });
});
