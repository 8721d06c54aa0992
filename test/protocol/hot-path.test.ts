import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** What a file imports when it runs: type-only imports are gone by then. */
function importsOf(file: URL): readonly string[] {
  const source = readFileSync(file, 'utf8');
  const statements = source.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)';/gms);
  return [...statements].map((match) => match[1] ?? '');
}

/** All the packages a file brings with it. */
function packagesOf(file: URL, seen = new Set<string>()): ReadonlySet<string> {
  for (const specifier of importsOf(file)) {
    if (seen.has(specifier)) continue;
    if (!specifier.startsWith('.')) {
      seen.add(specifier);
      continue;
    }
    const next = new URL(specifier.replace(/\.js$/, '.ts'), file);
    if (seen.has(next.href)) continue;
    seen.add(next.href);
    packagesOf(next, seen);
  }
  return new Set([...seen].filter((one) => !one.startsWith('file:')));
}

const room = new URL('../../src/protocol/', import.meta.url);

describe('what every command loads', () => {
  it.each([
    'ids.ts',
    'errors.ts',
    'closes.ts',
    'scopes.ts',
    'capabilities.ts',
    'lifetimes.ts',
    'headers.ts',
    'routes.ts',
    'version.ts',
  ])('%s brings no package with it, not even zod', (file) => {
    expect([...packagesOf(new URL(file, room))]).toEqual([]);
  });

  it('shapes bring zod and nothing else', () => {
    expect([...packagesOf(new URL('components.ts', room))]).toEqual(['zod/mini']);
    expect([...packagesOf(new URL('claims.ts', room))]).toEqual(['zod/mini']);
    expect([...packagesOf(new URL('openapi.ts', room))]).toEqual(['zod/mini']);
  });
});
