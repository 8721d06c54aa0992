/** How long programs take from nothing to their end, interleaved so that the machine's moods hit all alike. */
import { spawnSync } from 'node:child_process';

/** Medians in milliseconds, one a program. */
export function medianTimes(
  programs: Readonly<Record<string, readonly string[]>>,
  runs: number,
  variables: Readonly<Record<string, string>> = {},
): Record<string, number> {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const times = new Map<string, number[]>(Object.keys(programs).map((name) => [name, []]));
  for (let run = 0; run < runs; run += 1) {
    for (const [name, args] of Object.entries(programs)) {
      const began = performance.now();
      const { status, stderr } = spawnSync(process.execPath, args, {
        env: { ...env, HOME: '/nonexistent', ...variables },
      });
      times.get(name)?.push(performance.now() - began);
      if (status !== 0) throw new Error(`${name} failed: ${stderr}`);
    }
  }
  return Object.fromEntries([...times].map(([name, all]) => [name, median(all)]));
}

function median(values: readonly number[]): number {
  return (
    [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
  );
}
