import { expect, it } from 'vitest';
import { errorCode } from '../../src/base/error-code.js';

it('the code of an error is told, and nothing is made up where there is none', () => {
  expect(errorCode(Object.assign(new Error('x'), { code: 'ENOENT' }))).toBe('ENOENT');
  for (const none of [
    new Error('x'),
    Object.assign(new Error('x'), { code: 7 }),
    { code: 'E' },
    null,
    'E',
  ]) {
    expect(errorCode(none)).toBeUndefined();
  }
});
