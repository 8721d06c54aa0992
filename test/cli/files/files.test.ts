import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parsePlace, parseRemote } from '../../../src/cli/files/place.js';
import { type Served, serveSandbox } from '../../server/sandboxd/support/sandboxd.js';
import { ailsd, temporaryFolder } from '../../support/cli.js';
import { sandboxAccess } from '../../support/sandbox-access.js';

let served: Served;
let workspace: string;
let env: Record<string, string>;
beforeAll(async () => {
  served = await serveSandbox();
  workspace = join(served.folder, 'workspace');
  const access = { port: served.port, path: `/s/${served.id}`, token: served.token() };
  env = { AILSD_SANDBOX: sandboxAccess({ ...access, sandboxId: served.id, thread: 'thr_test' }) };
});
afterAll(() => served[Symbol.asyncDispose]());

const run = (args: readonly string[], cwd: string, input = '') => ailsd(args, { env, cwd, input });

describe('places', () => {
  it('a colon names a sandbox, but for drive letters and what has a slash before it', () => {
    const remote = (thread: string | undefined, path: string, isFolder = false) => ({
      kind: 'remote',
      thread,
      path,
      isFolder,
    });
    expect(parsePlace('thr:a/b')).toEqual(remote('thr', 'a/b'));
    expect(parsePlace('thr:')).toEqual(remote('thr', '', true));
    expect(parsePlace(':a/')).toEqual(remote(undefined, 'a', true));
    expect(parsePlace('thr:/a')).toEqual(remote('thr', 'a'));
    expect(parsePlace('t:a')).toEqual(remote('t', 'a'));
    for (const path of ['C:\\a', 'c:/a', 'C:', './a:b', 'dir/a:b', 'plain'])
      expect(parsePlace(path)).toEqual({ kind: 'local', path });
    expect(parsePlace('-')).toEqual({ kind: 'pipe' });
    expect(parseRemote('src/a')).toEqual(remote(undefined, 'src/a'));
    expect(() => parsePlace('thr:../a')).toThrow('inside the workspace');
  });
});

describe('ailsd cp and ailsd files', () => {
  it('files go in and out byte for byte, with the right to be run', async () => {
    using folder = temporaryFolder();
    const content = randomBytes(2_500_000);
    writeFileSync(join(folder.path, 'data'), content);
    writeFileSync(join(folder.path, 'tool'), '#!/bin/sh\n', { mode: 0o755 });
    expect(await run(['cp', 'data', 'tool', 'thr_test:in/'], folder.path)).toMatchObject({
      code: 0,
    });
    expect(readFileSync(join(workspace, 'in', 'data')).equals(content)).toBe(true);
    expect(statSync(join(workspace, 'in', 'tool')).mode & 0o777).toBe(0o755);
    expect(
      await run(['cp', ':in/data', ':in/tool', '.'], mkdir(folder.path, 'back')),
    ).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder.path, 'back', 'data')).equals(content)).toBe(true);
    expect(statSync(join(folder.path, 'back', 'tool')).mode & 0o777).toBe(0o755);
  });

  it('folders go in and out as they are, but for links that lead out', async () => {
    using folder = temporaryFolder();
    const tree = mkdir(folder.path, 'tree');
    mkdir(tree, 'empty');
    writeFileSync(join(mkdir(tree, 'a'), 'file'), 'one');
    symlinkSync('a/file', join(tree, 'link'));
    symlinkSync('/etc', join(tree, 'out'));
    const sent = await run(['cp', '-r', 'tree', ':copied'], folder.path);
    expect(sent).toMatchObject({ code: 0 });
    expect(sent.stderr).toContain('out');
    execFileSync('rm', [join(tree, 'out')]);
    const diff = (a: string, b: string) =>
      execFileSync('/usr/bin/env', ['diff', '-r', '--no-dereference', a, b]).toString();
    expect(diff(tree, join(workspace, 'copied'))).toBe('');
    symlinkSync('/etc', join(workspace, 'copied', 'evil'));
    expect((await run(['cp', '-r', ':copied', 'back'], folder.path)).code).toBe(0);
    expect(diff(tree, join(folder.path, 'back'))).toBe('');
  });

  it('pipes, conditions, and what is not there', async () => {
    using folder = temporaryFolder();
    const { path } = folder;
    expect((await run(['cp', '-', ':piped'], path, 'through a pipe')).code).toBe(0);
    expect((await run(['cp', ':piped', '-'], path)).stdout).toBe('through a pipe');
    expect((await run(['files', 'cat', 'piped'], path)).stdout).toBe('through a pipe');
    const tag = (text: string) => `"${createHash('sha256').update(text).digest('hex')}"`;
    const put = await run(['files', 'put', '-', ':note', '--new'], path, 'one');
    expect(put).toMatchObject({ code: 0, stdout: `${tag('one')}\n` });
    expect((await run(['files', 'put', '-', ':note', '--new'], path, 'two')).code).toBe(6);
    expect(
      (await run(['files', 'put', '-', ':note', '--if-match', tag('x')], path, 'two')).code,
    ).toBe(6);
    expect(
      (await run(['files', 'put', '-', ':note', '--if-match', tag('one')], path, 'two')).code,
    ).toBe(0);
    const stat = await run(['files', 'stat', ':note', '--json'], path);
    expect(JSON.parse(stat.stdout)).toMatchObject({
      kind: 'file',
      size_bytes: 3,
      etag: tag('two'),
      mode: 0o644,
    });
    const list = await run(['files', 'ls', '--json'], path);
    expect(JSON.parse(list.stdout).items).toContainEqual(
      expect.objectContaining({ name: 'note', kind: 'file' }),
    );
    expect((await run(['files', 'rm', ':note'], path)).code).toBe(0);
    expect((await run(['files', 'rm', ':note'], path)).code).toBe(3);
    expect((await run(['files', 'cat', ':none'], path)).code).toBe(3);
    expect((await run(['cp', 'none', ':none'], path)).code).toBe(3);
    mkdirSync(join(path, 'folder'));
    expect((await run(['cp', 'folder', ':x'], path)).code).toBe(1);
    expect((await run(['cp', 'a', 'b'], path)).code).toBe(2);
    mkdirSync(join(workspace, 'gone'));
    expect((await run(['files', 'rm', ':gone'], path)).code).toBe(2);
    expect((await run(['files', 'rm', '-r', ':gone'], path)).code).toBe(0);
  });
});

function mkdir(...parts: readonly string[]): string {
  const path = join(...parts);
  mkdirSync(path);
  return path;
}
