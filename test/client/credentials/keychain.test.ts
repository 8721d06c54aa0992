import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import {
  CHOICE_FILE,
  type ChooseOptions,
  chooseStore,
} from '../../../src/client/credentials/choose-store.js';
import { CREDENTIAL_FILE } from '../../../src/client/credentials/file-store.js';
import { ChildKeychain } from '../../../src/client/credentials/keychain-child.js';
import { AilsdError } from '../../../src/protocol/errors.js';
import { temporaryFolder } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { NO_KEYRING } from '../../support/keyring.js';
import {
  keyringSession,
  startBus,
  USELESS_KEYCHAINS,
  type Variables,
} from '../../support/useless-keychains.js';
import { makeCredential, revealed } from './support/credentials.js';
import {
  type BuiltProgram,
  buildProgram,
  KEYCHAIN_PROGRAM,
  programFile,
} from './support/program.js';

/** What a command may wait for a keychain. */
const LIMIT_MS = 3_000;

let program: BuiltProgram;
beforeAll(async () => {
  program = await buildProgram(KEYCHAIN_PROGRAM);
});
afterAll(() => program[Symbol.dispose]());

describe.each(Object.entries(USELESS_KEYCHAINS))('with %s', (_, { real, make }) => {
  it.skipIf(real && NO_KEYRING !== undefined)(
    'a login is refused, or goes to a private file and is told so, as asked, before it starts and within 3 s',
    async () => {
      const variables = await make();
      await Promise.all([isRefused(variables), goesToFile(variables)]);
      await eventually(() => childrenOf(program).length === 0);
    },
  );
});

/** AILSD_CREDENTIAL_STORE=keyring: nothing is written. */
async function isRefused(variables: Variables): Promise<void> {
  const options = optionsFor(variables, { wanted: 'keyring' });
  const error = await withinLimit(chooseStore(options).catch((thrown: unknown) => thrown));
  if (!(error instanceof AilsdError)) throw new Error('no error of ours', { cause: error });
  expect([error.code, error.row.exit]).toEqual(['KEYCHAIN_UNAVAILABLE', 4]);
  expect(error.hint).toContain('AILSD_CREDENTIAL_STORE=file');
  expect(existing(options)).toEqual([]);
}

/** AILSD_CREDENTIAL_STORE=auto: the choice is remembered. */
async function goesToFile(variables: Variables): Promise<void> {
  const options = optionsFor(variables, { wanted: 'auto' });
  using chosen = await withinLimit(chooseStore(options));
  expect(chosen.store.kind).toBe('file');
  expect(chosen.announcement).toMatch(/^[^\n]*credentials\.json[^\n]*keychain[^\n]*$/);
  await chosen.store.set(makeCredential(), { makeCurrent: true });
  expect(existing(options).sort()).toEqual([CHOICE_FILE, CREDENTIAL_FILE]);
  // From here on no keychain is asked: there is no program that could.
  const later = { ...options, keychainProgram: '/nonexistent' };
  using used = await chooseStore({ ...later, purpose: 'use' });
  const current = await used.store.current('https://issuer.test');
  expect(revealed(current)).toEqual(revealed(makeCredential()));
  using again = await chooseStore(later);
  expect(again.store.kind).toBe('file');
  expect(again.announcement).toContain('AILSD_CREDENTIAL_STORE=keyring');
}

describe.skipIf(NO_KEYRING !== undefined)('with a keychain that works', () => {
  it('a login goes there, is told so, and is found there afterwards without a test', async () => {
    const variables = await keyringSession(async (session) => {
      await session.startKeyring('unlocked');
    });
    const options = optionsFor(variables, { wanted: 'auto' });
    using chosen = await withinLimit(chooseStore(options));
    expect([chosen.store.kind, chosen.announcement]).toEqual([
      'keyring',
      expect.stringContaining('keychain'),
    ]);
    await chosen.store.set(makeCredential(), { makeCurrent: true });
    expect(existing(options)).toEqual([CHOICE_FILE]);
    using used = await chooseStore({ ...options, purpose: 'use' });
    const current = await used.store.current('https://issuer.test');
    expect(revealed(current)).toEqual(revealed(makeCredential()));
  });

  it('one that goes away later is an error, not another place', async () => {
    let freeze = (): void => undefined;
    const variables = await keyringSession(async (session) => {
      freeze = (await session.startKeyring('unlocked')).freeze;
    });
    const options = optionsFor(variables, { wanted: 'auto' });
    (await chooseStore(options))[Symbol.dispose]();
    freeze();
    using used = await chooseStore({ ...options, purpose: 'use' });
    const asking = used.store.current('https://issuer.test').catch((thrown: unknown) => thrown);
    expect(await withinLimit(asking)).toMatchObject({ code: 'KEYCHAIN_UNAVAILABLE' });
    // A second question does not get another 3 s.
    const begin = performance.now();
    await expect(used.store.list()).rejects.toMatchObject({ code: 'KEYCHAIN_UNAVAILABLE' });
    expect(performance.now() - begin).toBeLessThan(1_000);
  });

  it('passwords pass through pipes alone: not through arguments, nor our variables', async () => {
    const variables = await keyringSession(async (session) => {
      await session.startKeyring('unlocked');
    });
    using keychain = openKeychain({ ...variables, AILSD_TOKEN: 'hush-variable' });
    await keychain.setPassword('ailsd-test', 'account', 'hush-password');
    expect(await keychain.findPassword('ailsd-test')).toBe('hush-password');
    const [child, ...others] = childrenOf(program);
    expect(others).toEqual([]);
    const seen = ['cmdline', 'environ'].map((name) =>
      readFileSync(`/proc/${child}/${name}`, 'latin1'),
    );
    expect(seen.join()).toContain('serve');
    expect(seen.join()).not.toContain('hush');
    keychain[Symbol.dispose]();
    await eventually(() => childrenOf(program).length === 0);
  });
});

it.each(['as soon as it is there', 'once it is stuck in a native call'])(
  'the child ends when its parent is killed, %s',
  async (when) => {
    using user = await buildProgram(programFile('keychain-user'));
    let silences = 0;
    const env = await startBus(['OK 1234deadbeef\r\n'], () => {
      silences += 1;
    });
    const parent = spawn(process.execPath, [user.path, program.path], { env, stdio: 'ignore' });
    await eventually(() => childrenOf(program).length === 1);
    // The native code was greeted, has said more, and waits for an answer that never comes.
    if (when.includes('stuck')) await eventually(() => silences > 0);
    const exited = once(parent, 'exit');
    parent.kill('SIGKILL');
    await exited;
    await eventually(() => childrenOf(program).length === 0);
  },
);

it('a question that is never answered leaves no child behind', async () => {
  using keychain = openKeychain(await startBus(['OK 1234deadbeef\r\n']));
  const asking = keychain.getPassword('s', 'a').catch((thrown: unknown) => thrown);
  expect(await withinLimit(asking)).toMatchObject({ code: 'KEYCHAIN_UNAVAILABLE' });
  await eventually(() => childrenOf(program).length === 0);
});

it("the user's own keytar is used where there is one", async () => {
  using own = await buildProgram(KEYCHAIN_PROGRAM);
  const folder = join(own.folder, 'node_modules', 'keytar');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"name":"keytar","main":"index.cjs"}');
  writeFileSync(join(folder, 'index.cjs'), FAKE_KEYTAR);
  using keychain = openKeychain(await startBus(['OK 1234deadbeef\r\n']), own.path);
  await keychain.setPassword('s', 'a', 'p');
  expect(await keychain.getPassword('s', 'a')).toBe('keytar p');
  expect(await keychain.getPassword('s', 'b')).toBeNull();
  expect(await keychain.findCredentials('s')).toEqual([{ account: 'a', password: 'keytar p' }]);
  expect(await keychain.findPassword('s')).toBe('keytar p');
  expect(await keychain.deletePassword('s', 'a')).toBe(true);
  expect(await keychain.deletePassword('s', 'a')).toBe(false);
});

it('a driver that ends, or answers nonsense, is no keychain', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const bus = await startBus(['OK 1234deadbeef\r\n']);
  for (const text of [
    'process.exit(3)',
    'throw new Error()',
    'setInterval(() => console.log("x".repeat(1e6)), 1)',
  ]) {
    const path = join(folder.path, 'driver.cjs');
    writeFileSync(path, text);
    using keychain = openKeychain(bus, path);
    const asking = keychain.getPassword('s', 'a').catch((thrown: unknown) => thrown);
    expect(await withinLimit(asking)).toMatchObject({ code: 'KEYCHAIN_UNAVAILABLE' });
  }
});

if (NO_KEYRING !== undefined) it.skip(`skipped: ${NO_KEYRING}`);

function optionsFor(variables: Variables, given: Pick<ChooseOptions, 'wanted'>): ChooseOptions {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return {
    ...given,
    purpose: 'login',
    configFolder: join(folder.path, 'config'),
    variable: (name) => variables[name],
    platform: process.platform,
    userId: process.getuid?.(),
    keychainProgram: program.path,
    clock: systemClock,
  };
}

function openKeychain(variables: Variables, path = program.path): ChildKeychain {
  return new ChildKeychain({
    program: path,
    variable: (name) => variables[name],
    platform: process.platform,
    userId: process.getuid?.(),
    clock: systemClock,
  });
}

function existing({ configFolder = '' }: ChooseOptions): string[] {
  try {
    return readdirSync(configFolder);
  } catch {
    return [];
  }
}

async function withinLimit<T>(work: Promise<T>): Promise<T> {
  const begin = performance.now();
  const outcome = await work;
  expect(performance.now() - begin).toBeLessThan(LIMIT_MS);
  return outcome;
}

/** The processes that run it, by number. */
function childrenOf({ path }: BuiltProgram): readonly string[] {
  return readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      const [, first] = readFileSync(`/proc/${entry}/cmdline`, 'latin1').split('\0');
      return first === path;
    } catch {
      return false;
    }
  });
}

const FAKE_KEYTAR = `
  const kept = new Map();
  const list = () => [...kept].map(([account, password]) => ({ account, password }));
  module.exports = {
    getPassword: async (service, account) => kept.get(account) ?? null,
    setPassword: async (service, account, password) => void kept.set(account, 'keytar ' + password),
    deletePassword: async (service, account) => kept.delete(account),
    findCredentials: async () => list(),
    findPassword: async () => list()[0]?.password ?? null,
  };
`;
