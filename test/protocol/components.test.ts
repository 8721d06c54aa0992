import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as z from 'zod/mini';
import { componentName, isShapeName, SHAPE_NAMES, shape } from '../../src/protocol/components.js';

const folder = new URL('../../src/protocol/shapes/', import.meta.url);
/** Fields are what shapes are made of, and no shapes themselves; what a provider tells its daemon is on no route. */
const families = readdirSync(folder).filter(
  (file) => file !== 'fields.ts' && file !== 'sandboxd.ts',
);

describe('components', () => {
  it.each(families)('every shape of %s is a component, under a name of its own', async (file) => {
    const family: Record<string, unknown> = await import(new URL(file, folder).href);
    const shapes = Object.entries(family).filter(([, value]) => value instanceof z.core.$ZodType);
    expect(shapes.length).toBeGreaterThan(0);
    for (const [name, value] of shapes) {
      if (!isShapeName(name)) expect.fail(`${name} is not in components.ts`);
      else expect(shape(name), name).toBe(value);
    }
  });

  it('constants and functions beside the shapes are not components', () => {
    for (const name of ['SESSION_MODES', 'faceOf', 'parseBootstrap', 'pageOf', 'constructor'])
      expect(isShapeName(name)).toBe(false);
  });

  it('are called as their constants are, with a capital', () => {
    expect(componentName('sessionAnswer')).toBe('SessionAnswer');
    expect(new Set(SHAPE_NAMES.map(componentName)).size).toBe(SHAPE_NAMES.length);
  });
});
