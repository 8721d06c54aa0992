/** The guard before the drivers: bytes in the one form that all of them take. */
import { describe, expect, it } from 'vitest';
import { guardBinds } from '../../../src/server/store/bind-guard.js';

describe('the bind guard', () => {
  it('a Buffer, or any other kind of Uint8Array, goes on as a plain one with the same bytes', () => {
    class Bytes extends Uint8Array {}
    for (const form of [
      Buffer.from([1, 2, 3]),
      Buffer.from([0, 1, 2, 3]).subarray(1),
      Bytes.of(1, 2, 3),
    ]) {
      const [guarded] = guardBinds([form], 1);
      expect(Object.getPrototypeOf(guarded)).toBe(Uint8Array.prototype);
      expect(guarded).toEqual(new Uint8Array([1, 2, 3]));
    }
  });

  it('a refusal names place and type, and never the value', () => {
    for (const value of ['hunter2\0', { password: 'hunter2' }, ['hunter2']]) {
      const refuse = () => guardBinds([1, value], 2);
      expect(refuse).toThrow(/value 2/);
      expect(refuse).not.toThrow(/hunter2/);
    }
  });
});
