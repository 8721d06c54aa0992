import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Served, serveSandbox } from '../../server/sandboxd/support/sandboxd.js';
import { cuttingProxy } from '../../support/cutting-proxy.js';
import { eventually } from '../../support/eventually.js';
import { ailsdInPty, type PtyProgram, programInPty } from '../../support/pty.js';
import { sandboxAccess } from '../../support/sandbox-access.js';

let served: Served;
let file: string;
beforeAll(async () => {
  served = await serveSandbox();
  file = join(served.folder, 'workspace', 'poem.txt');
  const lines = Array.from(
    { length: 200 },
    (_, line) => `${line} grün 日本語 \u{1f600} ${'wide '.repeat(line % 30)}`,
  );
  writeFileSync(file, `${lines.join('\n')}\n`);
});
afterAll(() => served[Symbol.asyncDispose]());

const COLOURS =
  'printf "\\033[?1049h\\033[H"; for i in 1 2 3 4 5 6; do printf "\\033[38;2;%d;100;200m\\033[48;5;%dmcolour %d \\033[0m\\033[3;4mstyled\\033[0m\\r\\n" $((i*40)) $((i*10)) $i; done; printf "\\033[3;9r\\033[5;5H\\033[?25l"; read x';

/** A program, what to type, and what shows that it has been dealt with. */
const programs: [name: string, needs: string, command: string, keys: string[], shows: string][] = [
  ['less', '/usr/bin/less', 'less -S FILE', [' ', ' ', '/19 gr\r', 'G'], '(END)'],
  [
    'vim',
    '/usr/bin/vim',
    'vim -u NONE -N -c "set nomodeline noswapfile number hlsearch viminfo=" FILE',
    ['50G', '/wide\r', 'ihello\x1b', ':split\r'],
    'hello',
  ],
  ['colours, styles and a scroll region', '/bin/sh', COLOURS, [], 'colour 6'],
];

describe('the same picture as without anything in between', () => {
  for (const [name, needs, command, keys, shows] of programs) {
    const title = `${name}, also after a cut in its midst`;
    it.skipIf(!existsSync(needs))(title, async () => {
      const line = command.replace('FILE', file);
      await using proxy = await cuttingProxy(served.port);
      const access = {
        port: proxy.port,
        path: `/s/${served.id}`,
        token: served.token(),
        sandboxId: served.id,
        thread: 'thr_test',
      };
      const env = { AILSD_SANDBOX: sandboxAccess(access) };
      using ours = ailsdInPty(['attach', '--escape-char', 'none', '--cmd', line], { env });
      using plain = programInPty('/bin/sh', ['-c', line], {
        cwd: join(served.folder, 'workspace'),
      });
      // Both have begun: until then a terminal echoes keys by itself.
      const begun = keys.length === 0 ? shows : '日本語';
      await Promise.all([ours.shows(begun), plain.shows(begun)]);
      const half = Math.ceil(keys.length / 2);
      await typeBoth(ours, plain, keys.slice(0, half));
      await same(ours, plain);
      proxy.cut();
      await typeBoth(ours, plain, keys.slice(half));
      await ours.shows(shows);
      await same(ours, plain);
      await proxy.refuse(true);
      await ours.shows('no connection for');
      await proxy.refuse(false);
      await same(ours, plain);
      ours.resize(100, 20);
      plain.resize(100, 20);
      if (name !== 'colours, styles and a scroll region') await same(ours, plain);
    });
  }
});

async function typeBoth(
  ours: PtyProgram,
  plain: PtyProgram,
  keys: readonly string[],
): Promise<void> {
  for (const key of keys) {
    await same(ours, plain);
    ours.type(key);
    plain.type(key);
  }
}

/** Both have come to rest at the same picture. */
async function same(ours: PtyProgram, plain: PtyProgram): Promise<void> {
  await eventually(
    () => {
      const cells = plain.cells();
      return cells.some((row) => /\w{3}/.test(row)) && ours.cells().join('\n') === cells.join('\n');
    },
    () => {
      expect.soft(ours.cells()).toEqual(plain.cells());
      return 'the pictures differ';
    },
  );
}
