/** A replica as a process of its own that can be killed, with a sandbox elsewhere. Prints its URL when it serves. */
import { writeSync } from 'node:fs';
import { openStore } from '../../../../src/server/store/open-store.js';
import { type FolderPlan, FolderProvider } from '../../../support/folder-provider.js';
import { openReplica } from './replica.js';

const given: {
  readonly storeUrl: string;
  readonly cloudFolder: string;
  readonly endpoints: NonNullable<FolderPlan['endpoints']>;
} = JSON.parse(process.argv[2] ?? '{}');

const { endpoints } = given;
const replica = await openReplica({
  db: await openStore(given.storeUrl),
  provider: new FolderProvider(given.cloudFolder, { endpoints }),
});
writeSync(1, `${replica.url}\n`);
