/** Messages that are no frames, or frames that are wrong: none of them may do anything. */
import type { Random } from './random.js';

export function noise(random: Random): Buffer | string {
  const types = [
    'start',
    'stdin',
    'resize',
    'signal',
    'ack',
    'eof',
    'control',
    'bogus',
    '__proto__',
    '',
  ];
  switch (random.below(5)) {
    case 0:
      return Buffer.concat([Buffer.from([0x80]), random.bytes(random.below(64))]);
    case 1:
      return random.bytes(random.below(200)).toString('base64');
    case 2:
      return JSON.stringify({
        type: types[random.below(types.length)],
        cols: -1,
        data: 7,
        signal: 'SIGNONE',
        offset: -1,
        action: 1,
        shell_id: '',
        junk: random.below(9),
      });
    case 3:
      return JSON.stringify([random.next(), null, 'thr_test']);
    default:
      return '{"type":'.repeat(random.below(50));
  }
}
