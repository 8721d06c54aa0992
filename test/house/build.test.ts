import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VERSION } from '../../src/protocol/version.js';
import { proves } from '../requirements.js';
import { ailsd, BIN, runProgram, temporaryFolder } from '../support/cli.js';

const ROOT = join(BIN, '..', '..');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

describe('the package', () => {
  it(proves('the program, its package and its source name one version', 'HO-04'), async () => {
    expect((await ailsd(['--version'])).stdout).toBe(`${PACKAGE.version}\n`);
    expect(JSON.parse((await ailsd(['version', '--json'])).stdout)).toMatchObject({
      version: PACKAGE.version,
    });
    expect(JSON.parse((await ailsd(['--version', '--json'])).stdout)).toEqual({
      version: PACKAGE.version,
    });
    expect(VERSION).toBe(PACKAGE.version);
  });

  it(proves('a copy that was not built says so in one line', 'HO-02'), async () => {
    using folder = temporaryFolder();
    cpSync(join(ROOT, 'bin'), join(folder.path, 'bin'), { recursive: true });
    const { code, stdout, stderr } = await runProgram(process.execPath, [
      join(folder.path, 'bin', 'ailsd.js'),
      'version',
    ]);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: 'ailsd: CONFIG_INVALID: this copy was not built; run `npm run build` in it\n',
    });
  });

  it(
    proves('what is packed runs by itself and holds no source, tests or tools', 'HO-01'),
    async () => {
      using folder = temporaryFolder();
      const env = { HOME: folder.path, npm_config_cache: join(folder.path, 'cache') };
      const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder.path];
      const packed = await runProgram('npm', args, { cwd: ROOT, env });
      const [{ filename, files }] = JSON.parse(packed.stdout);
      const names: string[] = files.map((file: { path: string }) => file.path);
      expect(names).toEqual(
        expect.arrayContaining([
          'bin/ailsd.js',
          'bin/package.json',
          'dist/cli/ailsd.cjs',
          'dist/sdk/index.js',
          'dist/types/index.d.ts',
          'completions/_ailsd',
          'LICENSE',
          'README.md',
        ]),
      );
      expect(names.filter((name) => /^(src|test|\.)|\.test\./.test(name))).toEqual([]);

      await runProgram('tar', ['-xzf', filename], { cwd: folder.path });
      const installed = join(folder.path, 'package');
      symlinkSync(join(ROOT, 'node_modules'), join(installed, 'node_modules'));
      const run = (...words: string[]) =>
        runProgram(process.execPath, [join(installed, 'bin', 'ailsd.js'), ...words]);
      expect(await run('help', 'exit-codes')).toMatchObject({ code: 0, stderr: '' });
      expect(JSON.parse((await run('doctor', '--json')).stdout).checks).toContainEqual(
        expect.objectContaining({ name: 'pty', state: 'ok' }),
      );
      const sdk = `import { AilsdError, VERSION } from ${JSON.stringify(join(installed, 'dist', 'sdk', 'index.js'))}; console.log(VERSION, new AilsdError('NOT_FOUND', 'x').row.exit)`;
      const imported = await runProgram(process.execPath, ['--input-type=module', '-e', sdk]);
      expect(imported.stdout).toBe(`${PACKAGE.version} 3\n`);
    },
  );
});

describe('the doors between rooms', () => {
  /** A tree with one import that should not be, checked by the project's own rules. */
  async function violation(files: Record<string, string>) {
    using folder = temporaryFolder();
    for (const name of ['package.json', 'tsconfig.json', '.dependency-cruiser.cjs']) {
      cpSync(join(ROOT, name), join(folder.path, name));
    }
    symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(folder.path, name, '..'), { recursive: true });
      writeFileSync(join(folder.path, name), text);
    }
    const bin = join(ROOT, 'node_modules', '.bin', 'depcruise');
    return await runProgram(bin, ['--config', '.dependency-cruiser.cjs', 'src'], {
      cwd: folder.path,
    });
  }

  it(proves(
    'an import through a door that is not there fails and names the door',
    'HO-03',
  ), async () => {
    const cases: [Record<string, string>, string][] = [
      [
        { 'src/base/a.ts': "import '../cli/b.js';", 'src/cli/b.ts': 'export {};' },
        'door: src/base → nothing: src/base/a.ts → src/cli/b.ts',
      ],
      [
        {
          'src/client/a.ts': "import type { B } from '../server/http/b.js';",
          'src/server/http/b.ts': 'export type B = 1;',
        },
        'door: src/client → src/base, src/protocol, src/stream, src/sync: src/client/a.ts → src/server/http/b.ts',
      ],
      [
        { 'src/stream/a.ts': "import 'node:fs';" },
        'door: pure rooms → no node modules: src/stream/a.ts → fs',
      ],
      [
        { 'src/client/a.ts': "import 'commander';" },
        'home: commander lives in src/cli: src/client/a.ts → ',
      ],
      [
        { 'src/cli/a.ts': "import '../../test/b.js';", 'test/b.ts': 'export {};' },
        'door: nothing in src → test or tooling: src/cli/a.ts → test/b.ts',
      ],
    ];
    const results = await Promise.all(
      cases.map(async ([files, named]) => ({ named, ...(await violation(files)) })),
    );
    for (const { named, code, stdout } of results) {
      expect(stdout).toContain(named);
      expect(code).not.toBe(0);
    }
    expect(
      (await violation({ 'src/cli/a.ts': "import '../base/b.js';", 'src/base/b.ts': 'export {};' }))
        .code,
    ).toBe(0);
  }, 60_000);
});

describe('generated files', () => {
  it(
    proves('are what the source makes, and the check names one that is not', 'HO-05'),
    async () => {
      const script = join(ROOT, 'src', 'tooling', 'run.mjs');
      const check = () =>
        runProgram(process.execPath, [script, 'src/tooling/generate.ts', '--check'], { cwd: ROOT });
      const { code, stderr } = await check();
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    },
  );
});
