import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import {
  CHOICE_FILE,
  type ChooseOptions,
  chooseStore,
} from '../../../src/client/credentials/choose-store.js';
import { temporaryFolder } from '../../support/cli.js';
import { makeCredential } from './support/credentials.js';
import { buildProgram, programFile } from './support/program.js';

describe('where logins are kept', () => {
  it('is not decided, and nothing is written, by a command that only looks', async () => {
    const options = optionsFor({ purpose: 'use' });
    using chosen = await chooseStore(options);
    expect(chosen.store.kind).toBe('file');
    expect(chosen.announcement).toBeUndefined();
    expect(await chosen.store.current('https://issuer.test')).toBeUndefined();
    expect(await chosen.store.delete(makeCredential())).toBe(false);
    expect(existsSync(options.configFolder ?? '')).toBe(false);
  });

  it('is a file or memory where that is asked for, and a login says which', async () => {
    const options = optionsFor({ wanted: 'file' });
    using file = await chooseStore(options);
    expect([file.store.kind, file.announcement]).toEqual([
      'file',
      expect.stringContaining('credentials.json'),
    ]);
    const choice = join(options.configFolder ?? '', CHOICE_FILE);
    expect(JSON.parse(readFileSync(choice, 'utf8'))).toEqual({ version: 1, store: 'file' });
    expect(statSync(choice).mode & 0o777).toBe(0o600);
    const elsewhere = optionsFor({ wanted: 'memory' });
    using memory = await chooseStore(elsewhere);
    expect([memory.store.kind, memory.announcement]).toEqual([
      'memory',
      expect.stringContaining('forgotten'),
    ]);
    expect(existsSync(elsewhere.configFolder ?? '')).toBe(false);
  });

  it('without a home is memory for looking, and an error that says what to do for a login', async () => {
    using chosen = await chooseStore(optionsFor({ purpose: 'use', configFolder: undefined }));
    expect(chosen.store.kind).toBe('memory');
    for (const wanted of ['auto', 'file'] as const) {
      await expect(
        chooseStore(optionsFor({ wanted, configFolder: undefined })),
      ).rejects.toMatchObject({
        code: 'CREDENTIALS_UNWRITABLE',
        hint: expect.stringContaining('AILSD_CONFIG_DIR'),
      });
    }
  });

  it('is known to be unsafe before a login starts, not after it', async () => {
    const options = optionsFor({ wanted: 'file' });
    const folder = options.configFolder ?? '';
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, 'credentials.json'), '{}', { mode: 0o600 });
    chmodSync(join(folder, 'credentials.json'), 0o644);
    await expect(chooseStore(options)).rejects.toMatchObject({ code: 'CREDENTIALS_UNSAFE' });
    chmodSync(join(folder, 'credentials.json'), 0o600);
    chmodSync(folder, 0o777);
    for (const purpose of ['use', 'login'] as const) {
      await expect(chooseStore({ ...options, wanted: 'auto', purpose })).rejects.toMatchObject({
        code: 'CREDENTIALS_UNSAFE',
      });
    }
  });

  it('is decided anew where what was remembered makes no sense', async () => {
    const options = optionsFor({});
    mkdirSync(options.configFolder ?? '', { mode: 0o700 });
    for (const text of ['', '{', '{"store":"cloud"}', 'null']) {
      writeFileSync(join(options.configFolder ?? '', CHOICE_FILE), text, { mode: 0o600 });
      using chosen = await chooseStore(options);
      expect(chosen.announcement).toContain('there is no D-Bus session');
    }
  });
});

it('a good login in the file store costs no network, keychain, child process or schema to read', async () => {
  const options = optionsFor({ wanted: 'file' });
  using chosen = await chooseStore(options);
  await chosen.store.set(makeCredential(), { makeCurrent: true });
  using program = await buildProgram(programFile('token'));
  const run = (...more: string[]): string =>
    execFileSync(process.execPath, [program.path, options.configFolder ?? '', ...more], {
      encoding: 'utf8',
    });
  const { token, loaded } = JSON.parse(run('modules'));
  expect(token).toBe('access-1');
  const bare: string[] = JSON.parse(
    execFileSync(
      process.execPath,
      ['-e', 'process.stdout.write(JSON.stringify(process.moduleLoadList))'],
      { encoding: 'utf8' },
    ),
  );
  const more = loaded.filter((name: string) => !bare.includes(name));
  expect(
    more.filter((name: string) =>
      /child_process|net$|http|tls|crypto|undici|worker|readline|zlib/.test(name),
    ),
  ).toEqual([]);
});

function optionsFor(given: Partial<ChooseOptions>): ChooseOptions {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return {
    wanted: 'auto',
    purpose: 'login',
    configFolder: join(folder.path, 'config'),
    variable: () => undefined,
    // Where a keychain needs a bus, and there is none.
    platform: 'linux',
    userId: process.getuid?.(),
    keychainProgram: '/nonexistent',
    clock: systemClock,
    ...given,
  };
}
