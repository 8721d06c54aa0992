/** The contract of providers, over every one there is. */
import { afterAll, it } from 'vitest';
import { hasBubblewrap } from '../server/sandboxd/isolation/sandboxes.js';
import { bundleDaemon, openLocalPlace } from '../support/local-provider.js';
import { describeProvider } from './provider.js';

const program = await bundleDaemon();
afterAll(() => program[Symbol.asyncDispose]());

describeProvider({ name: 'local, without isolation', open: () => openLocalPlace(program, 'none') });
if (await hasBubblewrap()) {
  describeProvider({
    name: 'local, with namespaces',
    open: () => openLocalPlace(program, 'namespaces'),
  });
} else {
  it.skip('local, with namespaces: skipped: no bubblewrap');
}
