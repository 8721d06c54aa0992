import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Node 20 has no `await using`: lowered for tests as it is for the build.
  oxc: { target: 'node20' },
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/build.ts'],
    reporters: ['default', './test/support/requirements-reporter.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Real processes and PTYs: more workers than cores only makes their clocks lie.
    maxWorkers: 2,
  },
});
