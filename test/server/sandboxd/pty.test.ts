/** A real program in a real terminal. */
import { expect, it } from 'vitest';
import { Pty } from '../../../src/server/sandboxd/shell/pty.js';

const request = { env: { PATH: '/usr/bin:/bin', TERM: 'xterm' }, cwd: '/', cols: 80, rows: 24 };

function run(
  script: string,
): Promise<{ text: string; exitCode: number; signal: number; lateMs: number }> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let lastAt = performance.now();
    new Pty(
      { ...request, file: '/bin/sh', args: ['-c', script] },
      {
        data: (bytes) => {
          chunks.push(Buffer.from(bytes));
          lastAt = performance.now();
        },
        exit: (exit) =>
          resolve({
            text: Buffer.concat(chunks).toString('latin1'),
            ...exit,
            lateMs: performance.now() - lastAt,
          }),
      },
    );
  });
}

it('a fast program loses nothing of its end', async () => {
  const rounds = process.env['AILSD_SOAK'] === '1' ? 1000 : 60;
  const late: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { text, exitCode, lateMs } = await run(`head -c 20480 /dev/zero | tr '\\0' x; exit 7`);
    expect(text.length).toBe(20480);
    expect(exitCode).toBe(7);
    late.push(lateMs);
  }
  // Of most: the machine may be busy with something else now and then.
  expect(late.sort((a, b) => a - b)[Math.floor(rounds * 0.9)]).toBeLessThan(50);
});

it('death by a signal is told as such', async () => {
  expect(await run('kill -9 $$')).toMatchObject({ signal: 9 });
});
