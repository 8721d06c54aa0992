/** Builds the programs before the tests, so that a test never runs yesterday's code. */
export async function setup(): Promise<void> {
  const { build } = await import('../../src/tooling/build.mjs');
  await build();
}
