import { it } from 'vitest';
import { hasBubblewrap } from './sandboxes.js';
import { isolationSuite } from './suite.js';

/** Of nobody in particular. */
const ORDINARY = 64_321;

if (await hasBubblewrap()) isolationSuite('an ordinary user', becomeOrdinary);
else it.skip('skipped: no bubblewrap');

/** For good: this file has a process of its own. */
function becomeOrdinary(): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(ORDINARY);
  process.setuid?.(ORDINARY);
}
