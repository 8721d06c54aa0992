import { execFileSync } from 'node:child_process';
import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type CredentialSource,
  findCredentialSource,
} from '../../../src/client/credentials/headless.js';
import { AilsdError } from '../../../src/protocol/errors.js';
import { temporaryFolder } from '../../support/cli.js';

const GITHUB = {
  AILSD_OIDC: 'github',
  ACTIONS_ID_TOKEN_REQUEST_URL: 'https://ci.test/token',
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'ci-token',
};

describe('the identity of a program without a person', () => {
  it('is the first source that is set, in the order of the contract', () => {
    const file = fileWith('from-file\n');
    const sources: [Record<string, string>, string, string][] = [
      [{ AILSD_TOKEN: 'a' }, 'token AILSD_TOKEN', 'a'],
      [{ AILSD_TOKEN_FILE: file }, 'token AILSD_TOKEN_FILE', 'from-file'],
      [
        { AILSD_CLIENT_ID: 'ci', AILSD_CLIENT_SECRET: 's' },
        'client-secret AILSD_CLIENT_SECRET',
        's',
      ],
      [
        { AILSD_CLIENT_ID: 'ci', AILSD_CLIENT_SECRET_FILE: file },
        'client-secret AILSD_CLIENT_SECRET_FILE',
        'from-file',
      ],
      [{ AILSD_IDENTITY_TOKEN: 'i' }, 'identity-token AILSD_IDENTITY_TOKEN', 'i'],
      [
        { AILSD_IDENTITY_TOKEN_FILE: file },
        'identity-token AILSD_IDENTITY_TOKEN_FILE',
        'from-file',
      ],
      [GITHUB, 'github-oidc AILSD_OIDC', 'ci-token'],
    ];
    sources.forEach(([own, expected, secret], index) => {
      // Everything that comes later is set too, and does not matter.
      const later = sources.slice(index).map(([variables]) => variables);
      const found = find(Object.assign({}, ...later.reverse(), own));
      expect(`${found?.kind} ${found?.variable}`).toBe(expected);
      expect(secretOf(found)).toBe(secret);
      expect(inspect(found, { depth: 9 }) + JSON.stringify(found)).not.toContain(`'${secret}'`);
    });
    expect(find({})).toBeUndefined();
    expect(find({ ACTIONS_ID_TOKEN_REQUEST_URL: 'https://ci.test/' })).toBeUndefined();
  });

  it('in a file is read again each time: a rotated token is the one that counts', () => {
    const path = fileWith('one');
    const link = `${path}-link`;
    symlinkSync(path, link);
    const found = find({ AILSD_TOKEN_FILE: link });
    expect(secretOf(found)).toBe('one');
    writeFileSync(path, 'two\r\n');
    expect(secretOf(found)).toBe('two');
    writeFileSync(`${path}.new`, 'three');
    renameSync(`${path}.new`, path);
    expect(secretOf(found)).toBe('three');
    writeFileSync(path, '');
    expect(failure(() => secretOf(found))).toMatchObject({
      code: 'UNAUTHENTICATED',
      details: { variable: 'AILSD_TOKEN_FILE' },
    });
  });

  it.each([
    ['nothing', ''],
    ['a newline at its end', 'hush\n'],
    ['a control character', 'hu\u0000sh'],
    ['an escape', 'hush\u001b[2J'],
    ['a space', 'hush hush'],
    ['letters beyond ASCII', 'hüsh'],
    ['too much', 'hush'.repeat(5_000)],
  ])('that holds %s is refused by name, with exit 4, and is not repeated', (_, value) => {
    const also = { ...GITHUB, AILSD_CLIENT_ID: 'ci', AILSD_CLIENT_SECRET: 's' };
    for (const variable of ['AILSD_TOKEN', 'AILSD_CLIENT_SECRET', 'AILSD_IDENTITY_TOKEN']) {
      const set =
        variable === 'AILSD_IDENTITY_TOKEN'
          ? { [variable]: value }
          : { ...also, [variable]: value };
      const error = failure(() => find(set));
      expect(error).toMatchObject({ code: 'UNAUTHENTICATED', details: { variable } });
      expect(error.row.exit).toBe(4);
      expect(error.message + error.hint).toContain(variable);
      expect(error.message + error.hint).not.toMatch(/h[uü]/);
    }
    if (value === 'hush\n') return;
    const path = fileWith(value);
    expect(failure(() => secretOf(find({ AILSD_TOKEN_FILE: path })))).toMatchObject({
      code: 'UNAUTHENTICATED',
      details: { variable: 'AILSD_TOKEN_FILE' },
    });
  });

  it('in a file that cannot be read is refused with exit 4, and a pipe is not waited for', () => {
    const pipe = `${fileWith('')}-pipe`;
    execFileSync('mkfifo', [pipe]);
    for (const path of ['/nonexistent/token', import.meta.dirname, pipe, '/dev/zero']) {
      const error = failure(() => secretOf(find({ AILSD_TOKEN_FILE: path })));
      expect(error).toMatchObject({
        code: 'UNAUTHENTICATED',
        details: { variable: 'AILSD_TOKEN_FILE' },
      });
      expect(error.row.exit).toBe(4);
    }
    expect(failure(() => find({ AILSD_TOKEN_FILE: '' })).code).toBe('UNAUTHENTICATED');
  });

  it('exactly as long as it may be is fine', () => {
    const longest = 'x'.repeat(16_384);
    expect(secretOf(find({ AILSD_TOKEN: longest }))).toBe(longest);
    expect(secretOf(find({ AILSD_TOKEN_FILE: fileWith(`${longest}\r\n`) }))).toBe(longest);
  });

  it.each([
    [{ AILSD_CLIENT_ID: 'ci' }, 'AILSD_CLIENT_SECRET'],
    [{ AILSD_CLIENT_SECRET: 's' }, 'AILSD_CLIENT_ID'],
    [{ AILSD_CLIENT_SECRET_FILE: '/s' }, 'AILSD_CLIENT_ID'],
    [{ AILSD_OIDC: 'jenkins' }, 'AILSD_OIDC'],
    [{ AILSD_OIDC: '' }, 'AILSD_OIDC'],
    [{ AILSD_OIDC: 'github' }, 'id-token: write'],
    [{ ...GITHUB, ACTIONS_ID_TOKEN_REQUEST_URL: 'x' }, 'id-token: write'],
  ])(
    'half set, as %o, is a mistake in the configuration, and the error says what is missing',
    (set, missing) => {
      const error = failure(() => find(set));
      expect(error.code).toBe('CONFIG_INVALID');
      expect(error.row.exit).toBe(2);
      expect(error.message + error.hint).toContain(missing);
    },
  );
});

function find(variables: Readonly<Record<string, string>>): CredentialSource | undefined {
  return findCredentialSource((name) => variables[name]);
}

function secretOf(source: CredentialSource | undefined): string | undefined {
  if (source?.kind === 'github-oidc') return source.requestToken.reveal();
  return source?.read().reveal();
}

function fileWith(text: string): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, 'secret');
  writeFileSync(path, text);
  return path;
}

function failure(work: () => unknown): AilsdError {
  try {
    work();
  } catch (error) {
    if (error instanceof AilsdError) return error;
    throw error;
  }
  throw new Error('it should have failed');
}
