import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../../../requirements.js';
import { type FilesServed, serveFiles } from './support.js';

const SOAK = process.env['AILSD_SOAK'] !== undefined;

let files: FilesServed;
let outside: string;
const SECRET = 'outside-secret';

beforeAll(async () => {
  files = await serveFiles();
  const { workspace } = files;
  outside = join(files.served.folder, 'workspace-evil');
  mkdirSync(join(outside, 'sub'), { recursive: true });
  writeFileSync(join(outside, 'secret'), SECRET);
  mkdirSync(join(workspace, 'real'), { recursive: true });
  writeFileSync(join(workspace, 'real', 'file'), 'inside');
  symlinkSync(outside, join(workspace, 'out'));
  symlinkSync('/etc', join(workspace, 'etc'));
  symlinkSync('/no/such/place', join(workspace, 'nowhere'));
  symlinkSync('../workspace-evil', join(workspace, 'up'));
  symlinkSync('real/../../workspace-evil', join(workspace, 'real-up'));
  symlinkSync('out', join(workspace, 'to-out'));
  symlinkSync('to-out', join(workspace, 'to-to-out'));
  symlinkSync(join(outside, 'secret'), join(workspace, 'file-out'));
  symlinkSync('loop', join(workspace, 'loop'));
  symlinkSync('real', join(workspace, 'in'));
  symlinkSync('../in/./file', join(workspace, 'real', 'again'));
  symlinkSync(join(workspace, 'real', 'file'), join(workspace, 'whole'));
});
afterAll(() => files[Symbol.asyncDispose]());

const SPELLINGS = [
  '..',
  '../',
  '../workspace-evil/secret',
  'real/../../workspace-evil/secret',
  './file',
  'real/./file',
  'real/.',
  '%2e%2e',
  '%2e%2e/workspace-evil/secret',
  '%2E%2E/x',
  '.%2e/x',
  '%2e./x',
  '..%2fworkspace-evil%2fsecret',
  '%2e%2e%2fx',
  'real%2f..%2f..%2fx',
  '%252e%252e/x',
  '%252e%252e%252fx',
  '%25252e%25252e/x',
  '..%252fx',
  '..;/x',
  '..;',
  '.;/x',
  '..;a/x',
  '..%3b/x',
  '..%5cx',
  '%5c..%5cx',
  'real%5cfile',
  '..\\x',
  '\\etc',
  'C:\\x',
  '/etc/passwd',
  '//etc/passwd',
  '%2fetc%2fpasswd',
  'real//file',
  'real/',
  '%2f',
  'real/%2ffile',
  '/',
  '///',
  'a%00b',
  '%00',
  'real%00/file',
  'file%00.txt',
  'a%2500b',
  '%c0%ae%c0%ae/x',
  '%c0%af',
  '%e0%80%ae%e0%80%ae/x',
  '%ff',
  '%ed%a0%80',
  '%',
  '%2',
  '%zz',
  'x%c1%9cy',
  '.',
  '%2e',
  'real/..',
  'real/../real/../..',
  '../../../../../../etc/passwd',
  `${'x/'.repeat(2_500)}y`,
  `${'n'.repeat(256)}`,
  `real/${'%c3%a9'.repeat(200)}`,
];

const BY_LINK = [
  'out',
  'out/secret',
  'out/none',
  'out/sub/x',
  'etc',
  'etc/passwd',
  'etc/none',
  'nowhere',
  'nowhere/x',
  'up',
  'up/secret',
  'real-up/secret',
  'to-out/secret',
  'to-to-out',
  'to-to-out/secret',
  'file-out',
  'file-out/x',
  'loop',
  'loop/x',
];

const CUT = { status: 0, headers: {}, body: Buffer.alloc(0), code: undefined };

async function onEveryVerb(path: string) {
  const query = `path=${path.replaceAll('&', '%26').replaceAll('#', '%23').replaceAll('+', '%2b')}`;
  return [
    await files.ask('GET', `/files/${path}`),
    await files.ask('HEAD', `/files/${path}`),
    await files.ask('PUT', `/files/${path}`, { body: 'evil' }),
    await files.ask('DELETE', `/files/${path}`),
    await files.ask('GET', `/files/${path}?archive=tar`),
    await files.ask('GET', `/v1/files/download?${query}`),
    await files.ask('POST', `/v1/files/upload?${query}`, { body: 'evil' }),
    await files.ask('POST', `/v1/files/upload?${query}&extract=1`, { body: new Uint8Array(1_024) }),
  ];
}

function outsideNow(): string {
  return execFileSync('find', [
    outside,
    '/etc/passwd',
    '-printf',
    '%p %m %U %s %T@ %l\\n',
  ]).toString();
}

describe('paths of files', () => {
  it(
    proves('no spelling and no link leads out of the workspace, on any verb', 'FI-01'),
    async () => {
      const before = outsideNow();
      expect(SPELLINGS.length).toBeGreaterThanOrEqual(55);
      for (const path of SPELLINGS) {
        for (const answer of await onEveryVerb(path))
          expect(`${path}: ${answer.status}`).toBe(`${path}: 400`);
      }
      for (const path of BY_LINK) {
        for (const answer of await onEveryVerb(path)) {
          expect(`${path}: ${answer.status}`).toBe(`${path}: 403`);
          expect(answer.body.toString()).not.toContain(SECRET);
        }
      }
      expect(outsideNow()).toBe(before);
      expect(lstatSync(join(files.workspace, 'out')).isSymbolicLink()).toBe(true);
    },
  );

  it(
    proves(
      'a second name of a file elsewhere is not read, and replacing it leaves that file',
      'FI-01',
    ),
    async () => {
      const foreign = join(outside, 'foreign');
      writeFileSync(foreign, SECRET);
      chownSync(foreign, 12_345, 12_345);
      linkSync(foreign, join(files.workspace, 'hard'));
      for (const method of ['GET', 'HEAD'])
        expect((await files.ask(method, '/files/hard')).status).toBe(403);
      expect((await files.ask('PUT', '/files/hard', { body: 'mine' })).status).toBe(200);
      expect(readFileSync(foreign, 'utf8')).toBe(SECRET);
      expect((await files.ask('GET', '/files/hard')).body.toString()).toBe('mine');
    },
  );

  it('links that stay inside are followed, and are deleted themselves', async () => {
    for (const path of ['in/file', 'in/again', 'whole', 'real/file'])
      expect((await files.ask('GET', `/files/${path}`)).body.toString()).toBe('inside');
    symlinkSync('real/written', join(files.workspace, 'writes'));
    expect((await files.ask('PUT', '/files/writes', { body: 'through' })).status).toBe(201);
    expect(readFileSync(join(files.workspace, 'real', 'written'), 'utf8')).toBe('through');
    expect((await files.ask('DELETE', '/files/writes')).status).toBe(204);
    expect(existsSync(join(files.workspace, 'writes'))).toBe(false);
    expect(existsSync(join(files.workspace, 'real', 'written'))).toBe(true);
  });

  it(
    proves('a folder that is swapped for a link at full speed leads nowhere', 'FI-02'),
    async () => {
      const { workspace } = files;
      // Three reads and four changes each.
      const rounds = SOAK ? 6_700 : 50;
      const until = Date.now() + (SOAK ? 60_000 : 3_000);
      mkdirSync(join(workspace, 'swap'));
      writeFileSync(join(workspace, 'swap', 'secret'), 'inside');
      const before = outsideNow();
      const script = `const fs=require('fs');const [w,o]=process.argv.slice(1);process.stdout.write('on');
        for(;;){try{fs.renameSync(w+'/swap',w+'/aside');fs.symlinkSync(o,w+'/swap');fs.unlinkSync(w+'/swap');fs.renameSync(w+'/aside',w+'/swap')}
        catch(e){try{fs.unlinkSync(w+'/swap')}catch{};try{fs.rmSync(w+'/swap',{recursive:true})}catch{};try{fs.renameSync(w+'/aside',w+'/swap')}catch{}}}`;
      const swapper = spawn(process.execPath, ['-e', script, workspace, outside], {
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      await once(swapper.stdout, 'data');
      const seen = new Map<number, number>();
      try {
        for (let round = 0; round < rounds || Date.now() < until; round += 1) {
          const answers = await Promise.all([
            files.ask('GET', '/files/swap/secret'),
            files.ask('PUT', `/files/swap/new-${round % 7}`, { body: 'evil' }),
            files.ask('PUT', '/files/swap/secret', { body: 'inside' }),
            files.ask('GET', '/files/swap'),
            // An archive that can not be gone on with is cut: an error too.
            files.ask('GET', '/files/swap?archive=tar').catch(() => CUT),
            files.ask('DELETE', `/files/swap/new-${(round + 3) % 7}`),
            files.ask('DELETE', '/files/swap/sub'),
          ]);
          for (const { status, body } of answers) {
            seen.set(status, (seen.get(status) ?? 0) + 1);
            expect(body.includes(SECRET)).toBe(false);
            expect(status).not.toBe(500);
          }
          expect([200, 403, 404, 400]).toContain(answers[0]?.status);
          if (answers[0]?.status === 200) expect(answers[0].body.toString()).toBe('inside');
        }
      } finally {
        swapper.kill('SIGKILL');
        await once(swapper, 'close');
      }
      expect(outsideNow()).toBe(before);
      expect(seen.get(403) ?? 0).toBeGreaterThan(0);
      expect(seen.get(200) ?? 0).toBeGreaterThan(0);
    },
    SOAK ? 900_000 : 60_000,
  );

  it('what is written belongs to the account of the sandbox', async () => {
    await using inside = await serveFiles({ isolation: 'namespaces' });
    expect((await inside.ask('PUT', '/files/a/b/c', { body: 'x' })).status).toBe(201);
    const { uid } = statSync(inside.workspace);
    for (const path of ['a', 'a/b', 'a/b/c'])
      expect(statSync(join(inside.workspace, path)).uid).toBe(uid);
  });
});
