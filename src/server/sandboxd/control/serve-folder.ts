/** Lets the daemon of a folder be found and told what to do, and ends it when there is nothing left to serve. */
import type { Clock } from '../../../base/clock.js';
import type { Logger } from '../../../base/logger.js';
import { Scope } from '../../../base/scope.js';
import type { DaemonHealth } from '../../../protocol/shapes/sandboxd.js';
import type { Daemon } from '../daemon.js';
import { openControl } from './control.js';
import { writeDaemonFile } from './daemon-file.js';
import type { OwnedFolder } from './owned-folder.js';

export interface ServeOptions {
  readonly folder: OwnedFolder;
  readonly daemon: Daemon;
  readonly health: DaemonHealth;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when the daemon should end, with the reason. */
  readonly end: (reason: string) => void;
}

export async function serveFolder(options: ServeOptions): Promise<AsyncDisposable> {
  const { folder, daemon, health, clock, logger, end } = options;
  const scope = new Scope({
    clock,
    report: (name, error) => logger.error(`${name} failed`, { error }),
  });
  try {
    await writeDaemonFile(folder.dir, health);
    const shutdown = () => end('asked by the control channel');
    scope.use(await openControl({ dir: folder.dir, daemon, health, logger, shutdown }));
    scope.run('watching the folder', async (signal) => {
      while (await folder.isOurs()) await clock.sleep(LOOK_MS, signal);
      end('the folder is gone');
    });
    return scope;
  } catch (error) {
    await scope[Symbol.asyncDispose]();
    throw error;
  }
}

const LOOK_MS = 1_000;
