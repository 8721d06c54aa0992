/** Does one thing with the file store and ends as a command would: `store-user set|set-long|get|delete FOLDER [ACCOUNT]`. */
import { systemClock } from '../../../../src/base/clock.js';
import { processIo } from '../../../../src/cli/io.js';
import { reportError } from '../../../../src/cli/report.js';
import { plain } from '../../../../src/cli/style.js';
import { FileStore } from '../../../../src/client/credentials/file-store.js';
import { makeCredential, numberedCredential } from '../support/credentials.js';

async function main([what, path = '', account = 'usr_1']: readonly string[]): Promise<void> {
  const store = new FileStore({ path, userId: process.getuid?.() }, systemClock);
  if (what === 'set') await store.set(makeCredential({ account }));
  if (what === 'set-long') await store.set(numberedCredential(1));
  if (what === 'delete') await store.delete(makeCredential());
  const found = await store.get(makeCredential());
  process.stdout.write(found?.accessToken.reveal().slice(0, 20) ?? 'none');
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.exitCode = reportError(error, processIo(), { json: false, debug: false, style: plain });
});
