/** The log's way out: in order, bounded, and no hostage of whoever reads it. */
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LogSink } from '../../src/server/operations/log-sink.js';
import { eventually } from '../support/eventually.js';

it('lines come out whole and in order', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ailsd-log-'));
  const descriptor = openSync(join(folder, 'log'), 'w');
  const sink = new LogSink(descriptor);
  const lines = Array.from({ length: 5_000 }, (_, index) => `{"line":${index}}\n`);
  for (const [index, line] of lines.entries()) {
    sink.write(line);
    if (index % 1_000 === 0) await sink.flush(1_000);
  }
  await sink.flush(1_000);
  expect(readFileSync(join(folder, 'log'), 'utf8')).toBe(lines.join(''));
  closeSync(descriptor);
  rmSync(folder, { recursive: true });
});

it('a reader that stalls costs lines, not memory or time, and is told how many', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ailsd-log-'));
  const pipe = join(folder, 'pipe');
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
  // Both ways, so that opening does not wait for the reader, who comes late.
  const descriptor = openSync(pipe, 'r+');
  const sink = new LogSink(descriptor);
  const line = `{"pad":"${'x'.repeat(1_000)}"}\n`;
  const begin = performance.now();
  for (let count = 0; count < 5_000; count++) sink.write(line);
  await sink.flush(100);
  for (let count = 0; count < 5_000; count++) sink.write(line);
  expect(performance.now() - begin).toBeLessThan(2_000);

  const reader = spawn('cat', [pipe], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  reader.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  const linesOf = (word: string): string[] =>
    text.split('\n').filter((one) => one.includes(word) && one.endsWith('}'));
  const dropped = (): number =>
    linesOf('dropped').reduce((sum, one) => sum + JSON.parse(one).lines, 0);
  await eventually(() => linesOf('pad').length + dropped() === 10_000);
  expect(dropped()).toBeGreaterThan(1_000);
  reader.kill('SIGKILL');
  closeSync(descriptor);
  rmSync(folder, { recursive: true });
});
