import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { onAbort } from '../../src/base/abort.js';

it('everybody who asked is told once, in the order of asking', () => {
  const controller = new AbortController();
  const told: string[] = [];
  for (const name of ['a', 'b', 'c']) onAbort(controller.signal, () => told.push(name));
  controller.abort();
  controller.signal.dispatchEvent(new Event('abort'));
  expect(told).toEqual(['a', 'b', 'c']);
});

it('whoever asks after the abort is told at once', () => {
  const told: string[] = [];
  onAbort(AbortSignal.abort(), () => told.push('late'));
  expect(told).toEqual(['late']);
});

it('whoever called it off is not told, and the others are', () => {
  const controller = new AbortController();
  const told: string[] = [];
  const same = () => told.push('same');
  const first = onAbort(controller.signal, same);
  onAbort(controller.signal, same);
  first();
  first();
  controller.abort();
  expect(told).toEqual(['same']);
});

it('one who is told may call off another', () => {
  const controller = new AbortController();
  const told: string[] = [];
  onAbort(controller.signal, () => {
    told.push('first');
    second();
  });
  const second = onAbort(controller.signal, () => told.push('second'));
  controller.abort();
  expect(told).toEqual(['first']);
});

it('a thousand who ask are one listener on the signal, and none when they have gone', () => {
  const controller = new AbortController();
  const { signal } = controller;
  const stops = Array.from({ length: 1_000 }, () => onAbort(signal, () => undefined));
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  for (const stop of stops) stop();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  onAbort(signal, () => undefined);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  controller.abort();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('one that fails does not keep the others from being told, and its failure is not swallowed', async () => {
  const controller = new AbortController();
  const told: string[] = [];
  onAbort(controller.signal, () => {
    throw new Error('broken');
  });
  onAbort(controller.signal, () => told.push('second'));
  // What a listener throws, Node reports as an uncaught exception.
  const uncaught = new Promise((resolve) => {
    const others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.once('uncaughtException', (error) => {
      for (const other of others) process.on('uncaughtException', other);
      resolve(error);
    });
  });
  controller.abort();
  expect(told).toEqual(['second']);
  expect(await uncaught).toMatchObject({ message: 'broken' });
});
