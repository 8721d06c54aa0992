/** A login in a folder of its own, made by the real program, and looked at as the file that it is. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { CredentialSet } from '../../src/client/credentials/credential-set.js';
import { ailsd, temporaryFolder } from './cli.js';
import { deviceAnswer, type FakeIssuer, type Script } from './fake-issuer.js';

export interface LoginHome extends Disposable {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** The file's document; absent where there is none. */
  read(): StoredDocument | undefined;
  /** Makes the stored access token look as if it had ended a minute ago. */
  expire(): void;
}

interface StoredDocument {
  readonly credentials: readonly Readonly<Record<string, unknown>>[];
}

/** An empty home, with the server set and logins kept in a file. */
export function loginHome(url: string): LoginHome {
  const home = temporaryFolder();
  const folder = join(home.path, 'config');
  const file = join(folder, 'credentials.json');
  const read = (): StoredDocument | undefined =>
    existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  return {
    folder,
    env: { AILSD_CONFIG_DIR: folder, AILSD_URL: url, AILSD_CREDENTIAL_STORE: 'file' },
    read,
    expire: () => {
      const document = read();
      const ended = document?.credentials.map((one) => ({
        ...one,
        obtained_at: Date.now() - 960_000,
        access_expires_at: Date.now() - 60_000,
      }));
      writeFileSync(file, JSON.stringify({ ...document, credentials: ended }), { mode: 0o600 });
    },
    [Symbol.dispose]: () => home[Symbol.dispose](),
  };
}

/** The same, logged in. */
export async function loggedIn(issuer: FakeIssuer): Promise<LoginHome> {
  const home = loginHome(issuer.url);
  const { script } = issuer;
  issuer.script = quickly(issuer, script);
  const result = await ailsd(['login'], { env: home.env });
  issuer.script = script;
  expect(result, result.stderr).toMatchObject({ code: 0 });
  return home;
}

/** A device answer that may be polled at once. */
export function quickly(issuer: FakeIssuer, script?: Script, device: object = {}): Script {
  return (request) =>
    request.path === '/device/code'
      ? { json: { ...deviceAnswer(issuer.url), interval: 0.05, ...device } }
      : script?.(request);
}

/** Whole, ours alone, and nothing half-written that others could read. */
export function expectWholeStore(folder: string): void {
  if (!existsSync(folder)) return;
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile() === true) expect([name, stat.mode & 0o777]).toEqual([name, 0o600]);
  }
  const file = join(folder, 'credentials.json');
  if (existsSync(file)) expect(CredentialSet.parse(readFileSync(file, 'utf8')).kind).toBe('set');
}

/** A folder in front of PATH with a browser opener that only writes down what it was asked to open. */
export function fakeOpener(folder: string): {
  path: string;
  opened: () => string[];
  /** The names of the variables it was given. */
  variables: () => string[];
} {
  const bin = join(folder, 'bin');
  const log = join(folder, 'opened');
  mkdirSync(bin, { recursive: true });
  const script = `#!/bin/sh\nenv > '${log}.env'\nfor one in "$@"; do printf '%s\\n' "$one" >> '${log}'; done\n`;
  writeFileSync(join(bin, 'xdg-open'), script, { mode: 0o755 });
  return {
    path: `${bin}:${process.env['PATH']}`,
    opened: () => linesOf(log),
    variables: () => linesOf(`${log}.env`).map((line) => line.split('=', 1)[0] ?? ''),
  };
}

function linesOf(file: string): string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}
