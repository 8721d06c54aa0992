import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/base/clock.js';
import { createDeferred } from '../../src/base/deferred.js';
import { Scope } from '../../src/base/scope.js';
import { proves } from '../requirements.js';

/** A scope on a clock of its own, and what it reported. */
function openScope(parent?: AbortSignal) {
  const clock = new ManualClock();
  const reports: unknown[][] = [];
  const report = (name: string, error: unknown) => {
    reports.push([name, error]);
  };
  return { scope: new Scope({ clock, report, parent, closeTimeoutMs: 1_000 }), clock, reports };
}

const never = new Promise<never>(() => undefined);

function failing(message: string): () => never {
  return () => {
    throw new Error(message);
  };
}

describe('closing', () => {
  it(proves('closes last first, whatever kind each is', 'ST-04'), async () => {
    const closed: string[] = [];
    {
      await using scope = openScope().scope;
      const socket = { [Symbol.dispose]: () => closed.push('socket'), port: 80 };
      expect(scope.use(socket).port).toBe(80);
      scope.use({
        async [Symbol.asyncDispose]() {
          await Promise.resolve();
          closed.push('file');
        },
      });
      scope.defer(() => closed.push('raw mode'));
      expect(closed).toEqual([]);
    }
    expect(closed).toEqual(['raw mode', 'file', 'socket']);
  });

  it(proves('goes on when closing fails, and throws the failure at the end', 'ST-04'), async () => {
    const closed: string[] = [];
    const { scope } = openScope();
    scope.defer(() => closed.push('first'));
    scope.defer(failing('stuck'));
    scope.defer(() => closed.push('third'));
    await expect(scope[Symbol.asyncDispose]()).rejects.toThrow('stuck');
    expect(closed).toEqual(['third', 'first']);
  });

  it('throws several failures together, in the order they happened', async () => {
    const { scope } = openScope();
    scope.defer(failing('second'));
    scope.defer(() => Promise.reject(new Error('first')));
    await expect(scope[Symbol.asyncDispose]()).rejects.toMatchObject({
      name: 'AggregateError',
      errors: [{ message: 'first' }, { message: 'second' }],
    });
  });

  it('what is opened while closing is closed too', async () => {
    const closed: string[] = [];
    const { scope } = openScope();
    scope.run('opener', async (signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      scope.defer(() => closed.push('late'));
      scope.defer(() => {
        scope.defer(() => closed.push('later'));
      });
    });
    await scope[Symbol.asyncDispose]();
    expect(closed).toEqual(['later', 'late']);
  });

  it('what comes after closing is closed at once, and its owner told', async () => {
    const closed: string[] = [];
    const { scope } = openScope();
    await scope[Symbol.asyncDispose]();
    expect(() => scope.defer(() => closed.push('late'))).toThrow('the scope is closed');
    expect(closed).toEqual(['late']);
    expect(() => scope.run('late', () => closed.push('never'))).toThrow('the scope is closed');
    expect(closed).toEqual(['late']);
  });

  it('closing twice closes once, and whoever closes waits for the end of it', async () => {
    const happened: string[] = [];
    const { scope } = openScope();
    const closed = createDeferred();
    scope.defer(async () => {
      await closed.promise;
      happened.push('closed');
    });
    const closings = ['first', 'second'].map(async (name) => {
      await scope[Symbol.asyncDispose]();
      happened.push(name);
    });
    await new Promise(setImmediate);
    expect(happened).toEqual([]);
    closed.resolve();
    await Promise.all(closings);
    expect(happened).toEqual(['closed', 'first', 'second']);
  });

  it(
    proves('a resource that does not close is left behind after the bound', 'ST-02', 'ST-04'),
    async () => {
      const closed: string[] = [];
      const { scope, clock } = openScope();
      scope.defer(() => closed.push('first'));
      scope.defer(() => never);
      const closing = scope[Symbol.asyncDispose]();
      const outcome = expect(closing).rejects.toThrow('not closed within 1000 ms');
      await clock.advance(999);
      expect(closed).toEqual([]);
      await clock.advance(1);
      await outcome;
      expect(closed).toEqual(['first']);
      expect(clock.sleeping).toBe(0);
    },
  );

  it(proves('closes everything, last first, whichever of them fail', 'ST-04'), async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 12 }), async (fails) => {
        const { scope } = openScope();
        const closed: number[] = [];
        fails.forEach((isFailing, at) => {
          scope.defer(() => {
            closed.push(at);
            if (isFailing) throw at;
          });
        });
        const failure = await scope[Symbol.asyncDispose]().then(() => [], failuresOf);
        expect(closed).toEqual(fails.map((_, at) => at).toReversed());
        expect(failure).toEqual(closed.filter((at) => fails[at]));
      }),
    );
  });
});

function failuresOf(error: unknown): unknown[] {
  return error instanceof AggregateError ? error.errors : [error];
}

describe('background work', () => {
  it('is told to end, and resources close only when it has', async () => {
    const happened: string[] = [];
    const { scope, reports } = openScope();
    const ended = createDeferred();
    scope.defer(() => happened.push('closed'));
    scope.run('reader', async (signal) => {
      signal.addEventListener('abort', () => happened.push('told'));
      await ended.promise;
      happened.push('ended');
    });
    const closing = scope[Symbol.asyncDispose]();
    await new Promise(setImmediate);
    expect(happened).toEqual(['told']);
    ended.resolve();
    await closing;
    expect(happened).toEqual(['told', 'ended', 'closed']);
    expect(reports).toEqual([]);
  });

  it('that fails is reported at once, and aborts what waits in the scope', async () => {
    const { scope, clock, reports } = openScope();
    const failure = new Error('line lost');
    const waiting = clock.sleep(1_000, scope.signal);
    scope.run('ping', async () => {
      throw failure;
    });
    await expect(waiting).rejects.toBe(failure);
    expect(reports).toEqual([['ping', failure]]);
    await scope[Symbol.asyncDispose]();
  });

  it('that throws before it is a promise, or is one already, is reported all the same', async () => {
    const { scope, reports } = openScope();
    scope.run('sync', failing('a'));
    scope.run('promise', Promise.reject(new Error('b')));
    await scope[Symbol.asyncDispose]();
    expect(reports).toMatchObject([
      ['sync', { message: 'a' }],
      ['promise', { message: 'b' }],
    ]);
  });

  it('that fails has aborted the scope by the time it is reported', async () => {
    const aborted: boolean[] = [];
    const report = () => aborted.push(scope.signal.aborted);
    const scope = new Scope({ clock: new ManualClock(), report });
    scope.run('ping', failing('line lost'));
    await new Promise(setImmediate);
    expect(aborted).toEqual([true]);
    await scope[Symbol.asyncDispose]();
  });

  it('whose report throws aborts the scope all the same, and closing says so at its end', async () => {
    const closed: string[] = [];
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      const clock = new ManualClock();
      const report = (name: string) => failing(`the log is full at ${name}`)();
      const scope = new Scope({ clock, report });
      scope.defer(() => closed.push('socket'));
      const waiting = clock.sleep(1_000, scope.signal);
      scope.run('ping', failing('line lost'));
      await expect(waiting).rejects.toThrow('line lost');
      scope.run('pong', failing('line lost'));
      await expect(scope[Symbol.asyncDispose]()).rejects.toThrow(/^the log is full at ping$/);
      expect(closed).toEqual(['socket']);
      await new Promise(setImmediate);
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });

  it('that ends because it was told to has not failed', async () => {
    const { scope, clock, reports } = openScope();
    scope.run('heartbeat', (signal) => clock.sleep(10_000, signal));
    scope.run('request', async (signal) => {
      await clock.sleep(10_000, signal).catch(() => undefined);
      throw new DOMException('The operation was aborted', 'AbortError');
    });
    await scope[Symbol.asyncDispose]();
    expect(reports).toEqual([]);
    expect(clock.sleeping).toBe(0);
  });

  it('that fails while it is ending is reported', async () => {
    const { scope, clock, reports } = openScope();
    scope.run('saver', async (signal) => {
      await clock.sleep(10_000, signal).catch(() => undefined);
      throw new Error('disk full');
    });
    await scope[Symbol.asyncDispose]();
    expect(reports).toMatchObject([['saver', { message: 'disk full' }]]);
  });

  it(
    proves('that does not end is named and left behind after the bound', 'ST-02', 'ST-04'),
    async () => {
      const closed: string[] = [];
      const { scope, clock } = openScope();
      scope.defer(() => closed.push('socket'));
      scope.run('reader', never);
      scope.run('writer', () => never);
      scope.run('done', Promise.resolve());
      const closing = scope[Symbol.asyncDispose]();
      const outcome = expect(closing).rejects.toThrow(
        'still running 1000 ms after its end: reader, writer',
      );
      await clock.advance(1_000);
      await outcome;
      expect(closed).toEqual(['socket']);
    },
  );
});

describe('a parent', () => {
  it('that aborts, or has aborted, aborts the scope with its reason', () => {
    const parent = new AbortController();
    const { scope } = openScope(parent.signal);
    expect(scope.signal.aborted).toBe(false);
    parent.abort('ctrl-c');
    expect(scope.signal.reason).toBe('ctrl-c');
    expect(openScope(parent.signal).scope.signal.reason).toBe('ctrl-c');
  });

  it('that aborts closes nothing: that stays with who opened the scope', async () => {
    const closed: string[] = [];
    const parent = new AbortController();
    const { scope } = openScope(parent.signal);
    scope.defer(() => closed.push('one'));
    parent.abort();
    await new Promise(setImmediate);
    expect(closed).toEqual([]);
    await scope[Symbol.asyncDispose]();
    expect(closed).toEqual(['one']);
  });

  it('that lives on remembers nothing of closed scopes', async () => {
    const { signal } = new AbortController();
    const { scope } = openScope(signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await scope[Symbol.asyncDispose]();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});
