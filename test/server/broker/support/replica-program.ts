/** A replica as a process of its own: prints its URL when it serves, and dies at the step it was told, if any. */
import { writeSync } from 'node:fs';
import { type Clock, systemClock } from '../../../../src/base/clock.js';
import { openStore } from '../../../../src/server/store/open-store.js';
import { type FolderPlan, FolderProvider } from '../../../support/folder-provider.js';
import {
  CRASH_STEPS,
  CRASH_WHILE_REAPING,
  type CrashStep,
  type ReplicaArguments,
} from './crash-steps.js';
import { CrashingDb, crash } from './crashing-db.js';
import { openReplica } from './replica.js';

const given: ReplicaArguments = JSON.parse(process.argv[2] ?? '{}');
const step = [...CRASH_STEPS, CRASH_WHILE_REAPING].find(({ name }) => name === given.crashAt);

const store = await openStore(given.storeUrl);
const db = step?.point === undefined ? store : new CrashingDb(store, step.point);
const clock: Clock = {
  ...systemClock,
  now: () => Date.now() + (given.clockOffsetMs ?? 0),
};
const replica = await openReplica({
  db,
  provider: new FolderProvider(given.cloudFolder, planOf(step)),
  config: given.config,
  jobs: given.jobs,
  clock,
});
writeSync(1, `${replica.url}\n`);

function planOf(at: CrashStep | undefined): FolderPlan {
  return {
    ...(given.delayMs && { delayMs: given.delayMs }),
    before: async (verb) => {
      if (verb === at?.before) crash();
      if (verb !== 'list' || !given.tellsReaping) return;
      writeSync(1, `begin ${Date.now()}\n`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    },
    after: async (verb) => {
      if (verb === at?.after) crash();
      if (verb === 'list' && given.tellsReaping) writeSync(1, `end ${Date.now()}\n`);
    },
  };
}
