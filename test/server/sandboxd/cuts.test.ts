/** What a shell prints and what is typed into it, over a line that is cut again and again. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { proves } from '../../requirements.js';
import { eventually } from '../../support/eventually.js';
import { cuttingProxy } from './support/cutting-proxy.js';
import { SOAK, seededRandom } from './support/random.js';
import { type Served, serveSandbox } from './support/sandboxd.js';
import { steadyClient } from './support/steady-client.js';

let served: Served;
beforeAll(async () => {
  served = await serveSandbox();
});
afterAll(() => served[Symbol.asyncDispose]());

const OUTPUT = SOAK ? { bytes: 64 * 2 ** 20, cuts: 1_000 } : { bytes: 6 * 2 ** 20, cuts: 90 };
const INPUT = SOAK ? { keys: 100_000, cuts: 500 } : { keys: 4_000, cuts: 25 };

it(proves(
  'output over a line that is cut is whole, in order, and comes once',
  'PT-01',
), async () => {
  const random = seededRandom();
  const content = random.bytes(OUTPUT.bytes);
  const file = join(served.dir, 'noise');
  await writeFile(file, content);
  using proxy = await cuttingProxy(served.port, () =>
    random.below((OUTPUT.bytes / OUTPUT.cuts) * 2),
  );
  const hash = createHash('sha256');
  const client = steadyClient({
    url: `ws://127.0.0.1:${proxy.port}/s/${served.id}/v1/shell/ws`,
    token: () => served.token(),
    clientId: 'reader',
    start: { shell_id: 'new', command: ['/bin/sh', '-c', `stty raw -echo; cat ${file}`] },
    onOutput: (bytes) => hash.update(bytes),
  });
  try {
    expect(await client.exit, `seed ${random.seed}`).toMatchObject({ exit_code: 0 });
    expect(client.snapshots).toBe(0);
    expect(proxy.cuts).toBeGreaterThan(OUTPUT.cuts / 2);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(content).digest('hex'));
  } finally {
    client.stop();
  }
}, 180_000);

it(proves(
  'each key typed over a line that is cut is applied once and in order',
  'PT-02',
), async () => {
  const random = seededRandom();
  const file = join(served.dir, 'typed');
  using proxy = await cuttingProxy(
    served.port,
    () => 200 + random.below((INPUT.keys * 40) / INPUT.cuts),
  );
  const client = steadyClient({
    url: `ws://127.0.0.1:${proxy.port}/s/${served.id}/v1/shell/ws`,
    token: () => served.token(),
    clientId: 'typist',
    start: { shell_id: 'new', command: ['/bin/sh', '-c', `stty raw -echo; cat > ${file}`] },
    onOutput: () => undefined,
  });
  try {
    await eventually(() => client.isReady);
    let wanted = '';
    for (let key = 0; key < INPUT.keys; key++) {
      const text = `${key};`;
      wanted += text;
      client.type(Buffer.from(text));
      if (key % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    proxy.heal();
    await eventually(
      () => client.acknowledged === wanted.length,
      () => `seed ${random.seed}: ${client.acknowledged} of ${wanted.length} acknowledged`,
    );
    await eventually(async () => (await readFile(file)).length >= wanted.length);
    expect(proxy.cuts, `seed ${random.seed}`).toBeGreaterThan(INPUT.cuts / 4);
    expect((await readFile(file, 'latin1')) === wanted).toBe(true);
  } finally {
    client.stop();
  }
}, 180_000);
