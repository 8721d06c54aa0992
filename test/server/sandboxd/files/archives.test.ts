import { execFileSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { concatBytes } from '../../../../src/base/bytes.js';
import type { TarEntry } from '../../../../src/base/tar-entry.js';
import { tarEnd, tarHeader, tarPadding } from '../../../../src/base/tar-writer.js';
import { proves } from '../../../requirements.js';
import { temporaryFolder } from '../../../support/cli.js';
import { type FilesServed, serveFiles } from './support.js';

let files: FilesServed;
let outside: string;
beforeAll(async () => {
  files = await serveFiles();
  outside = join(files.served.folder, 'elsewhere');
  mkdirSync(outside);
});
afterAll(() => files[Symbol.asyncDispose]());

type Thing = Partial<TarEntry> & { readonly path: string; readonly content?: string };

function tar(...things: readonly Thing[]): Uint8Array {
  const parts = things.flatMap(({ content = '', ...entry }) => {
    const bytes = Buffer.from(content);
    const full: TarEntry = {
      kind: 'file',
      mode: 0o644,
      modifiedAtMs: 0,
      target: '',
      sizeBytes: bytes.length,
      ...entry,
    };
    return [tarHeader(full), bytes, new Uint8Array(tarPadding(bytes.length))];
  });
  return concatBytes([...parts, tarEnd()]);
}

function upload(folder: string, body: Uint8Array) {
  return files.ask('POST', `/v1/files/upload?path=${folder}&extract=1`, { body });
}

/** Writes over bytes of the first header, and makes its sum right again. */
function patched(bytes: Uint8Array, at: number, text: string): Uint8Array {
  const copy = Buffer.from(bytes);
  copy.write(text, at, 'latin1');
  copy.fill(0x20, 148, 156);
  const sum = copy.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  copy.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return copy;
}

const GOOD: Thing = { path: 'good', content: 'good' };
const LONG = 'x'.repeat(256);

const HOSTILE: Readonly<Record<string, Uint8Array>> = {
  absolute: tar(GOOD, { path: '/tmp/ailsd-evil' }),
  'up and out': tar(GOOD, { path: '../elsewhere/evil' }),
  'up in the middle': tar(GOOD, { path: 'a/../../elsewhere/evil' }),
  'a link out': tar(GOOD, { path: 'l', kind: 'link', target: '/etc' }),
  'a link up and out': tar(GOOD, { path: 'a/l', kind: 'link', target: '../../../elsewhere' }),
  'a file through a link': tar(
    { path: 'd', kind: 'folder' },
    { path: 'l', kind: 'link', target: 'd' },
    { path: 'l/evil', content: 'x' },
  ),
  'a link where files went': tar(
    { path: 'p/evil', content: 'x' },
    { path: 'p', kind: 'link', target: 'good' },
  ),
  'a hard link out': tar(GOOD, { path: 'h', kind: 'hard-link', target: '/etc/passwd' }),
  'a hard link up': tar(GOOD, { path: 'h', kind: 'hard-link', target: '../elsewhere/x' }),
  'a hard link to nothing': tar(GOOD, { path: 'h', kind: 'hard-link', target: 'none' }),
  'the same name twice': tar(GOOD, GOOD),
  'the same name, spelt otherwise': tar(GOOD, { path: './good', content: 'x' }),
  'a pipe': tar(GOOD, { path: 'f', kind: 'other' }),
  'a device': patched(tar({ path: 'f' }), 156, '3'),
  'a block device': patched(tar({ path: 'f' }), 156, '4'),
  sparse: patched(tar({ path: 'f' }), 156, 'S'),
  'a name that is too long': tar(GOOD, { path: LONG }),
  'no archive': Buffer.alloc(2_048, 'x'),
  'half an archive': tar(GOOD, { path: 'b', content: 'x'.repeat(3_000) }).subarray(0, 2_000),
  nothing: new Uint8Array(0),
};

describe('archives and odd files', () => {
  it(proves(
    'hostile archives are refused whole, odd files block nothing, no name is lost',
    'FI-04',
  ), async () => {
    mkdirSync(join(files.workspace, 'into'));
    for (const [what, body] of Object.entries(HOSTILE)) {
      const { status, code } = await upload('into', body);
      expect(`${what}: ${status} ${code}`).toBe(`${what}: 400 INVALID_REQUEST`);
      expect(readdirSync(join(files.workspace, 'into'))).toEqual([]);
      expect(readdirSync(join(files.served.folder, 'staging'))).toEqual([]);
    }
    expect(readdirSync(outside)).toEqual([]);

    const setuid = patched(tar({ path: 'su', content: 'x' }), 100, '0006755');
    expect((await upload('modes', setuid)).status).toBe(200);
    expect(statSync(join(files.workspace, 'modes', 'su')).mode & 0o7777).toBe(0o755);

    const twins = tar(
      { path: 'Name', content: '1' },
      { path: 'name', content: '2' },
      { path: Buffer.from('\u00e9').toString('latin1'), content: '3' },
      { path: Buffer.from('e\u0301').toString('latin1'), content: '4' },
    );
    expect((await upload('twins', twins)).status).toBe(200);
    expect(readdirSync(join(files.workspace, 'twins'))).toHaveLength(4);

    execFileSync('mkfifo', [join(files.workspace, 'fifo')]);
    execFileSync('python3', [
      '-c',
      'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])',
      join(files.workspace, 's'),
    ]);
    execFileSync('mknod', [join(files.workspace, 'null'), 'c', '1', '3']);
    for (const name of ['fifo', 's', 'null']) {
      const began = performance.now();
      expect((await files.ask('GET', `/files/${name}`)).code).toBe('INVALID_REQUEST');
      expect((await files.ask('HEAD', `/files/${name}`)).status).toBe(400);
      expect(performance.now() - began).toBeLessThan(1_000);
    }
    expect((await files.ask('GET', '/files/good-as-ever')).status).toBe(404);

    const names = ['a\nb', '\x1b[31m', 'n'.repeat(255), 'ünï', ' ', 'a"b'];
    mkdirSync(join(files.workspace, 'names'));
    for (const name of names) writeFileSync(join(files.workspace, 'names', name), name);
    const raw = Buffer.from([0x61, 0xff, 0xfe, 0x0a]);
    writeFileSync(Buffer.concat([Buffer.from(join(files.workspace, 'names/')), raw]), 'raw');
    const seen: Buffer[] = [];
    let cursor = '';
    do {
      const answer = await files.ask('GET', `/files/names?limit=2${cursor}`);
      const page = JSON.parse(answer.body.toString());
      for (const { name, name_encoding } of page.items)
        seen.push(Buffer.from(name, name_encoding ?? 'utf8'));
      cursor = page.next_cursor === undefined ? '' : `&cursor=${page.next_cursor}`;
    } while (cursor !== '');
    const wanted = [...names.map((name) => Buffer.from(name)), raw].sort(Buffer.compare);
    expect(seen).toEqual(wanted);
    using out = temporaryFolder();
    const packed = await files.ask('GET', '/v1/files/download?path=names');
    execFileSync('tar', ['-x', '-C', out.path], { input: packed.body });
    expect(readdirSync(out.path, { encoding: 'buffer' }).sort(Buffer.compare)).toEqual(wanted);
  }, 60_000);

  it('a folder comes back as it went: contents, modes, links, empty folders, over what was there', async () => {
    using folder = temporaryFolder();
    const root = join(folder.path, 'tree');
    mkdirSync(join(root, 'a', 'b'), { recursive: true });
    mkdirSync(join(root, 'empty'));
    writeFileSync(join(root, 'a', 'run'), '#!/bin/sh\n', { mode: 0o755 });
    writeFileSync(join(root, 'a', 'b', `${'l'.repeat(120)}`), Buffer.alloc(300_000, 7));
    symlinkSync('../a/run', join(root, 'a', 'link'));
    const sent = execFileSync('tar', ['-c', '-C', root, '.']);
    for (let round = 0; round < 2; round += 1)
      expect((await upload('tree', sent)).status).toBe(200);
    const there = join(files.workspace, 'tree');
    expect(
      execFileSync('/usr/bin/env', ['diff', '-r', '--no-dereference', root, there]).toString(),
    ).toBe('');
    expect(statSync(join(there, 'a', 'run')).mode & 0o777).toBe(0o755);
    expect(readlinkSync(join(there, 'a', 'link'))).toBe('../a/run');
    expect(lstatSync(join(there, 'empty')).isDirectory()).toBe(true);
    const got = await files.ask('GET', '/files/tree', { headers: { accept: 'application/x-tar' } });
    expect(got.headers['content-type']).toBe('application/x-tar');
    const back = join(folder.path, 'back');
    mkdirSync(back);
    execFileSync('tar', ['-x', '-C', back], { input: got.body });
    expect(
      execFileSync('/usr/bin/env', ['diff', '-r', '--no-dereference', root, back]).toString(),
    ).toBe('');
    expect(
      (await files.ask('GET', '/files/tree', { headers: { accept: 'image/png' } })).status,
    ).toBe(406);
  });

  it('what is in the way is found before anything is changed', async () => {
    mkdirSync(join(files.workspace, 'way', 'folder'), { recursive: true });
    writeFileSync(join(files.workspace, 'way', 'file'), 'old');
    symlinkSync(outside, join(files.workspace, 'way', 'out'));
    const cases: readonly (readonly [number, Thing])[] = [
      [400, { path: 'folder', content: 'x' }],
      [400, { path: 'file', kind: 'folder' }],
      [400, { path: 'file/x', content: 'x' }],
      [403, { path: 'out/x', content: 'x' }],
      [403, { path: 'out/y/x', content: 'x' }],
    ];
    for (const [status, thing] of cases) {
      expect((await upload('way', tar({ path: 'first', content: '1' }, thing))).status).toBe(
        status,
      );
      expect(readdirSync(join(files.workspace, 'way')).sort()).toEqual(['file', 'folder', 'out']);
    }
    expect(readFileSync(join(files.workspace, 'way', 'file'), 'utf8')).toBe('old');
    expect(readdirSync(outside)).toEqual([]);
  });
});
