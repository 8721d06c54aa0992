/** The parts of a shell that need no program: who may write, how large it is, what a screen may pass over, what is taken out. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/base/clock.js';
import { createEmulator, HISTORY_LINES } from '../../../src/server/sandboxd/shell/emulator.js';
import { CLIENTS_MAX, Inputs } from '../../../src/server/sandboxd/shell/inputs.js';
import { GRACE_MS, Lease, type Party } from '../../../src/server/sandboxd/shell/lease.js';
import { chooseSize } from '../../../src/server/sandboxd/shell/sizes.js';
import { skippable } from '../../../src/server/sandboxd/shell/skip.js';

describe('the lease', () => {
  const party = (actor: Party['actor'], name: string): Party => ({ actor, name });
  const leaseOf = () => {
    const clock = new ManualClock();
    const told: string[] = [];
    const lease = new Lease<Party>({
      monotonic: () => clock.monotonic(),
      tell: (to, event, isWriter, by) => told.push(`${to.name} ${event} ${isWriter} by ${by.name}`),
    });
    return { lease, told, clock };
  };

  it('is kept for a writer whose line was cut, but not for ever', async () => {
    const { lease, told, clock } = leaseOf();
    const [ann, ben] = [party('human', 'ann'), party('human', 'ben')];
    expect(lease.take(ann)).toBe(true);
    lease.leave(ann, 'cut');
    expect(lease.request(ben)).toBe(false);
    await clock.advance(GRACE_MS - 1);
    lease.sweep();
    expect(lease.holder).toBeUndefined();
    await clock.advance(1);
    lease.sweep();
    expect(lease.holder).toBe(ben);
    expect(told).toEqual(['ben granted true by ann']);
  });

  it('comes back at once to the same person on another line', () => {
    const { lease } = leaseOf();
    lease.take(party('human', 'ann'));
    lease.leave(party('human', 'nobody'), 'cut');
    const again = party('human', 'ann');
    expect(lease.take(again)).toBe(true);
    expect(lease.holder).toBe(again);
  });

  it('goes from an agent to a human, also an absent agent, and never the other way', () => {
    const { lease, told } = leaseOf();
    const [agent, human] = [party('agent', 'bot'), party('human', 'ann')];
    lease.take(agent);
    expect(lease.take(human)).toBe(true);
    expect(told).toEqual(['bot taken false by ann']);
    expect(lease.take(agent)).toBe(false);
    lease.leave(human, 'cut');
    expect(lease.take(agent)).toBe(false);
    lease.leave(human, 'left');
    expect(lease.take(party('human', 'ann'))).toBe(true);
  });
});

it('each policy asks another window', () => {
  const viewers = [
    { size: { cols: 100, rows: 50 }, isWriter: true, sizedAt: 1 },
    { size: { cols: 120, rows: 40 }, isWriter: false, sizedAt: 3 },
    { size: undefined, isWriter: false, sizedAt: 4 },
  ];
  const current = { cols: 80, rows: 24 };
  expect(chooseSize('driver', viewers, current)).toEqual({ cols: 100, rows: 50 });
  expect(chooseSize('smallest', viewers, current)).toEqual({ cols: 100, rows: 40 });
  expect(chooseSize('latest', viewers, current)).toEqual({ cols: 120, rows: 40 });
  expect(chooseSize('fixed', viewers, current)).toEqual(current);
  expect(chooseSize('driver', [], current)).toEqual(current);
});

it('input is remembered of so many clients, and the one away longest is forgotten', () => {
  const inputs = new Inputs();
  inputs.join('first', 0);
  inputs.accept('first', 0, new Uint8Array(5));
  for (let at = 0; at < CLIENTS_MAX - 1; at++) inputs.join(`c${at}`, 0);
  expect(inputs.join('first', 3)).toBe(5);
  for (let at = 0; at < CLIENTS_MAX; at++) inputs.join(`d${at}`, 0);
  expect(inputs.join('first', 3)).toBe(3);
});

it('a screen that passes over a flood shows what one shows that saw it all', {
  timeout: 60_000,
}, async () => {
  const word = fc.constantFrom(
    'plain ',
    '\x1b[31mred\x1b[0m ',
    '\x1b[1;44mx\x1b[m',
    'äö→日本 ',
    '\t',
    '\x1b[K',
    '%',
  );
  const line = fc.array(word, { maxLength: 12 }).map((words) => `${words.join('')}\r\n`);
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { minLength: 1, maxLength: 30 }),
      fc.string(),
      async (lines, last) => {
        const text = Buffer.from(
          lines.join('').repeat(120) + last.replace(/[\x00-\x1f\x7f-\x9f]/g, ''),
        );
        const { bytes: skipped, instead } = skippable(text, 24 + HISTORY_LINES);
        using all = createEmulator({ cols: 80, rows: 24 });
        using some = createEmulator({ cols: 80, rows: 24 });
        const before = Buffer.from('\x1b[33mbefore\x1b[?2004h\r\n');
        await all.write(Buffer.concat([before, text]));
        await some.write(before);
        await some.write(Buffer.from(instead));
        await some.write(text.subarray(skipped));
        expect(await some.serialize(HISTORY_LINES)).toBe(await all.serialize(HISTORY_LINES));
      },
    ),
    { numRuns: 40 },
  );
});

it('what may change more than colours is never passed over', () => {
  const flood = 'line\n'.repeat(5_000);
  for (const sequence of [
    '\x1b[?1049h',
    '\x1b7',
    '\x1b[5;9r',
    '\x1b]2;title\x07',
    '\x0e',
    '\u009b5r',
    '\x1b[2J',
  ])
    expect(skippable(Buffer.from(sequence + flood), 1_024).bytes).toBe(0);
  expect(skippable(Buffer.from(flood), 1_024)).toEqual({ bytes: (5_000 - 1_024) * 5, instead: '' });
  expect(skippable(Buffer.from('no end of line '.repeat(5_000)), 1_024).bytes).toBe(0);
});
