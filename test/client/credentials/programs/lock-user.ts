/** Takes a lock when told to and says what it did: `lock-user FOLDER hold`, or `lock-user FOLDER count FILE TIMES`. */
import { closeSync, openSync, readFileSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { systemClock } from '../../../../src/base/clock.js';
import { withLock } from '../../../../src/client/credentials/process-lock.js';

const [folder = '', what, file = '', times = '1'] = process.argv.slice(2);
const lock = { folder, name: 'test', clock: systemClock, waitMs: 60_000 };

async function main(): Promise<void> {
  if (what === 'hold') {
    await withLock(lock, async () => {
      writeSync(1, 'held\n');
      await systemClock.sleep(600_000);
    });
  }
  for (let time = 0; time < Number(times); time += 1) await withLock(lock, count);
}

/** Fails if anybody else is inside, and loses a count if anybody was. */
async function count(): Promise<void> {
  closeSync(openSync(`${file}.inside`, 'wx'));
  const before = Number(readFileSync(file, 'utf8'));
  await systemClock.sleep(1);
  writeFileSync(file, String(before + 1));
  unlinkSync(`${file}.inside`);
}

main().catch((error: unknown) => {
  writeSync(2, String(error));
  process.exitCode = 1;
});
