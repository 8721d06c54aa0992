import { describe, it } from 'vitest';
import { hasBubblewrap } from './sandboxes.js';
import { isolationSuite } from './suite.js';

if (!(await hasBubblewrap())) it.skip('skipped: no bubblewrap');
else if (process.getuid?.() === 0) isolationSuite('being root', () => undefined);
else describe.skip('skipped: not root');
