import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { concatBytes } from '../../src/base/bytes.js';
import { type TarEntry, TarError } from '../../src/base/tar-entry.js';
import { readTar } from '../../src/base/tar-reader.js';
import { tarEnd, tarHeader, tarPadding } from '../../src/base/tar-writer.js';
import { temporaryFolder } from '../support/cli.js';

interface Thing {
  readonly entry: TarEntry;
  readonly content: Uint8Array;
}

function archiveOf(things: readonly Thing[]): Uint8Array {
  const parts = things.flatMap(({ entry, content }) => [
    tarHeader(entry),
    content,
    new Uint8Array(tarPadding(content.length)),
  ]);
  return concatBytes([...parts, tarEnd()]);
}

async function* pieces(bytes: Uint8Array, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(bytes: Uint8Array, size?: number): Promise<Thing[]> {
  const things: Thing[] = [];
  for await (const { entry, content } of readTar(pieces(bytes, size))) {
    const parts: Uint8Array[] = [];
    for await (const piece of content()) parts.push(piece);
    things.push({ entry, content: concatBytes(parts) });
  }
  return things;
}

function file(path: string, content = new Uint8Array(0)): Thing {
  const entry: TarEntry = {
    path,
    kind: 'file',
    mode: 0o640,
    sizeBytes: content.length,
    modifiedAtMs: 1_700_000_000_000,
    target: '',
  };
  return { entry, content };
}

/** Bytes as Latin-1, without the ones a name cannot have. */
const name = fc
  .array(fc.integer({ min: 1, max: 255 }), { minLength: 1, maxLength: 300 })
  .map((codes) => String.fromCharCode(...codes).replaceAll('/', '_'));

describe('tar', () => {
  it('what is written is read back, whatever the names, sizes and pieces', async () => {
    const thing = fc.record({ name, content: fc.uint8Array({ maxLength: 2_000 }) });
    const some = fc.array(thing, { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(some, fc.integer({ min: 1, max: 2_000 }), async (given, size) => {
        const things = given.map(({ name: path, content }) => file(path, content));
        expect(await read(archiveOf(things), size)).toEqual(things);
      }),
      { numRuns: 60 },
    );
  });

  it('whatever comes is an archive or an error of its own', async () => {
    const whole = archiveOf([file('a', Buffer.from('hello')), file(`${'n'.repeat(150)}`)]);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: whole.length - 1 }),
        fc.integer({ min: 0, max: 255 }),
        fc.integer({ min: 0, max: whole.length }),
        async (at, value, end) => {
          const bytes = Uint8Array.from(whole);
          bytes[at] = value;
          await read(bytes.subarray(0, end)).catch((error: unknown) => {
            expect(error).toBeInstanceOf(TarError);
          });
        },
      ),
      { numRuns: 300 },
    );
  });

  it('an archive that is cut is an error, wherever the cut is', async () => {
    const bytes = archiveOf([file('a', new Uint8Array(600))]);
    for (const end of [0, 100, 512, 700, 1_112, 1_535])
      await expect(read(bytes.subarray(0, end))).rejects.toBeInstanceOf(TarError);
  });

  it("the system's tar reads ours, and we read its own in each of its formats", async () => {
    using folder = temporaryFolder();
    const long = `${'d'.repeat(80)}/${'f'.repeat(60)}`;
    mkdirSync(join(folder.path, 'in', 'd'.repeat(80)), { recursive: true });
    writeFileSync(join(folder.path, 'in', long), 'long');
    writeFileSync(join(folder.path, 'in', 'x'), 'short', { mode: 0o755 });
    symlinkSync('x', join(folder.path, 'in', 'l'));
    for (const format of ['gnu', 'pax', 'ustar']) {
      const made = execFileSync('tar', [
        `--format=${format}`,
        '-C',
        join(folder.path, 'in'),
        '-c',
        '.',
      ]);
      const things = await read(made);
      const byPath = new Map(things.map((thing) => [thing.entry.path.replace(/^\.\//, ''), thing]));
      expect(Buffer.from(byPath.get(long)?.content ?? []).toString()).toBe('long');
      expect(byPath.get('l')?.entry).toMatchObject({ kind: 'link', target: 'x' });
      expect(byPath.get('x')?.entry.mode).toBe(0o755);
    }
    const ours = archiveOf([
      file('plain', Buffer.from('one')),
      { ...file(`folder/${'n'.repeat(200)}`, Buffer.from('two')) },
    ]);
    mkdirSync(join(folder.path, 'out'));
    execFileSync('tar', ['-x', '-C', join(folder.path, 'out')], { input: ours });
    expect(readFileSync(join(folder.path, 'out', 'plain'), 'utf8')).toBe('one');
    expect(statSync(join(folder.path, 'out', 'plain')).mode & 0o777).toBe(0o640);
    expect(readdirSync(join(folder.path, 'out', 'folder'))).toEqual(['n'.repeat(200)]);
  });
});
