/** A process that writes to a store: `count URL N` adds N to a counter, `append URL PREFIX` adds rows until it is killed. */
import { writeSync } from 'node:fs';
import { openStore } from '../../../../src/server/store/open-store.js';

const [task, url = '', argument = ''] = process.argv.slice(2);

await using db = await openStore(url);
if (task === 'count') await count(Number(argument));
else await Promise.all(Array.from({ length: 8 }, (_, lane) => append(`${argument}-${lane}`)));

/** Half by statement, half by reading, thinking and writing. */
async function count(times: number): Promise<void> {
  for (let at = 0; at < times; at++) {
    if (at % 2 === 0) {
      await db.run("UPDATE counters SET n = n + 1 WHERE name = 'shared'");
      continue;
    }
    await db.transaction(async (tx) => {
      const [row] = await tx.query("SELECT n FROM counters WHERE name = 'shared'");
      await tx.run("UPDATE counters SET n = ? WHERE name = 'shared'", [Number(row?.['n']) + 1]);
    });
  }
}

/** Prints a row's name once it is acknowledged. */
async function append(lane: string): Promise<void> {
  for (let at = 0; ; at++) {
    const name = `${lane}-${at}`;
    if (at % 2 === 0) {
      // Both rows or none.
      await db.transaction(async (tx) => {
        await tx.run('INSERT INTO rows (name) VALUES (?)', [name]);
        await tx.run('INSERT INTO rows (name) VALUES (?)', [`${name}-twin`]);
      });
    } else {
      await db.run('INSERT INTO rows (name) VALUES (?)', [name]);
    }
    writeSync(1, `${name}\n`);
  }
}
