import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../../../requirements.js';
import { eventually } from '../../../support/eventually.js';
import { serveSandbox } from '../support/sandboxd.js';
import { type FilesServed, serveFiles } from './support.js';

let files: FilesServed;
beforeAll(async () => {
  files = await serveFiles();
});
afterAll(() => files[Symbol.asyncDispose]());

function etag(content: string | Uint8Array): string {
  return `"${createHash('sha256').update(content).digest('hex')}"`;
}

function staged(): readonly string[] {
  return readdirSync(join(files.served.folder, 'staging'));
}

describe('replacing files', () => {
  it(
    proves(
      'each of many reads during continuous writes is one whole version with its tag',
      'FI-03',
    ),
    async () => {
      const versions = Array.from({ length: 8 }, (_, n) => `${n}`.repeat(20_000 + n));
      await files.ask('PUT', '/files/busy', { body: versions[0] ?? '' });
      let isOver = false;
      const writing = (async () => {
        for (let n = 0; !isOver; n += 1)
          expect(
            (await files.ask('PUT', '/files/busy', { body: versions[n % 8] ?? '' })).status,
          ).toBe(200);
      })();
      const reads = process.env['AILSD_SOAK'] === undefined ? 1_000 : 10_000;
      for (let n = 0; n < reads; n += 10) {
        const answers = await Promise.all(
          Array.from({ length: 10 }, () => files.ask('GET', '/files/busy')),
        );
        for (const { status, headers, body } of answers) {
          expect(status).toBe(200);
          expect(versions).toContain(body.toString());
          expect(headers['etag']).toBe(etag(body));
        }
      }
      isOver = true;
      await writing;
    },
  );

  it(proves('of fifty who make a file only if it is new, one does', 'FI-03'), async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        files.ask('PUT', '/files/once', { body: `${n}`, headers: { 'if-none-match': '*' } }),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ code }) => code === 'PRECONDITION_FAILED')).toHaveLength(49);
    const winner = answers.findIndex(({ status }) => status === 201);
    expect(readFileSync(join(files.workspace, 'once'), 'utf8')).toBe(`${winner}`);
  });

  it(
    proves(
      'a stale write is refused with the tag of what is there, and of two with one tag one wins',
      'FI-03',
    ),
    async () => {
      await files.ask('PUT', '/files/tagged', { body: 'one' });
      const put = (body: string, tag: string) =>
        files.ask('PUT', '/files/tagged', { body, headers: { 'if-match': tag } });
      const answers = await Promise.all([put('two', etag('one')), put('three', etag('one'))]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 412]);
      const stale = await put('four', etag('one'));
      const now = readFileSync(join(files.workspace, 'tagged'));
      expect(JSON.parse(stale.body.toString()).error).toMatchObject({
        code: 'PRECONDITION_FAILED',
        etag: etag(now),
      });
      expect((await put('five', `W/${etag(now)}`)).status).toBe(412);
      expect((await put('six', 'nonsense')).status).toBe(400);
      expect(
        (await files.ask('DELETE', '/files/tagged', { headers: { 'if-match': etag('one') } }))
          .status,
      ).toBe(412);
      expect(
        (await files.ask('DELETE', '/files/tagged', { headers: { 'if-match': etag(now) } })).status,
      ).toBe(204);
      expect(
        (await files.ask('PUT', '/files/tagged', { body: 'x', headers: { 'if-match': '*' } }))
          .status,
      ).toBe(412);
    },
  );

  it('ranges, what has not changed, and what is past the end', async () => {
    const content = Buffer.from(Array.from({ length: 3_000_000 }, (_, n) => n % 251));
    expect(await files.ask('PUT', '/files/large', { body: content })).toMatchObject({
      status: 201,
    });
    for (const size of ['large', 'small']) {
      const whole = size === 'large' ? content : content.subarray(0, 1_000);
      if (size === 'small') await files.ask('PUT', '/files/small', { body: whole });
      const get = (headers: Record<string, string>) =>
        files.ask('GET', `/files/${size}`, { headers });
      const part = await get({ range: 'bytes=10-19' });
      expect(part).toMatchObject({ status: 206, body: whole.subarray(10, 20) });
      expect(part.headers['content-range']).toBe(`bytes 10-19/${whole.length}`);
      expect((await get({ range: 'bytes=-5' })).body).toEqual(whole.subarray(-5));
      expect((await get({ range: 'bytes=990-' })).body.equals(whole.subarray(990))).toBe(true);
      expect((await get({ range: 'bytes=10-19', 'if-range': '"other"' })).status).toBe(200);
      const past = await get({ range: `bytes=${whole.length}-` });
      expect(past).toMatchObject({ status: 416, code: 'RANGE_NOT_SATISFIABLE' });
      expect(past.headers['content-range']).toBe(`bytes */${whole.length}`);
      expect((await get({ 'if-none-match': etag(whole) })).status).toBe(304);
      expect((await get({})).body.equals(whole)).toBe(true);
      const head = await files.ask('HEAD', `/files/${size}`);
      expect(head.headers).toMatchObject({
        etag: etag(whole),
        'content-length': `${whole.length}`,
      });
    }
  });

  it(
    proves(
      'a body that is cut, or shorter than it says, changes nothing and leaves nothing behind',
      'FI-03',
    ),
    async () => {
      await files.ask('PUT', '/files/kept', { body: 'before' });
      const { port, id } = files.served;
      const head = `PUT /s/${id}/files/kept HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${files.served.token()}\r\n`;
      for (const rest of [
        'Content-Length: 100\r\n\r\nhalf',
        'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
      ]) {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => undefined);
        socket.write(head + rest);
        await eventually(() => staged().length === 1);
        socket.destroy();
        await eventually(() => staged().length === 0);
      }
      expect(readFileSync(join(files.workspace, 'kept'), 'utf8')).toBe('before');
    },
  );

  it('what a daemon that was killed left half made is gone when the next one serves', async () => {
    const served = await serveSandbox();
    await served.daemon[Symbol.asyncDispose]();
    const folder = join(served.folder, 'staging');
    mkdirSync(join(folder, 'f', 'deep', 'er'), { recursive: true });
    writeFileSync(join(folder, 'half'), 'half');
    await using again = await serveSandbox({ again: served });
    expect(readdirSync(join(again.folder, 'staging'))).toEqual([]);
    expect(readdirSync(join(again.folder, 'workspace'))).toEqual([]);
  });

  it('a folder is deleted with all that is in it, however deep, and links in it are not followed', async () => {
    const deep = join(files.workspace, 'deep');
    mkdirSync(deep);
    execFileSync(
      'sh',
      [
        '-c',
        'i=0; while [ $i -lt 300 ]; do mkdir dddddddddd && cd dddddddddd; i=$((i+1)); done; echo x > end; ln -s /etc l',
      ],
      { cwd: deep },
    );
    expect((await files.ask('DELETE', '/files/deep')).status).toBe(204);
    expect(existsSync(deep)).toBe(false);
    expect(existsSync('/etc/passwd')).toBe(true);
    expect(staged()).toEqual([]);
    expect((await files.ask('DELETE', '/files/deep')).status).toBe(404);
    expect((await files.ask('DELETE', '/files/')).status).toBe(400);
  });
});
