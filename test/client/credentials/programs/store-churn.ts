/** Logs in, refreshes and logs out as fast as it can until it is killed: `store-churn FOLDER`. */
import { writeSync } from 'node:fs';
import { systemClock } from '../../../../src/base/clock.js';
import { FileStore } from '../../../../src/client/credentials/file-store.js';
import { numberedCredential } from '../support/credentials.js';

async function churn(path: string): Promise<never> {
  const store = new FileStore({ path, userId: process.getuid?.() }, systemClock);
  writeSync(1, 'ready\n');
  for (let round = 1; ; round += 1) {
    await store.set(numberedCredential(round * 10), { makeCurrent: true });
    for (let refresh = 1; refresh < 4; refresh += 1) {
      await store.set(numberedCredential(round * 10 + refresh));
    }
    await store.delete(numberedCredential(0));
  }
}

void churn(process.argv[2] ?? '');
