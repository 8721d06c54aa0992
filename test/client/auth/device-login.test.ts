import { describe, expect, it } from 'vitest';
import { ManualClock, systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import {
  awaitApproval,
  requestDeviceCode,
  type WaitingNews,
} from '../../../src/client/auth/device-login.js';
import { connectIssuer } from '../../../src/client/auth/issuer.js';
import type { Tokens } from '../../../src/client/auth/tokens.js';
import { createHttp, type Http } from '../../../src/client/http/http.js';
import { AilsdError } from '../../../src/protocol/errors.js';
import { proves } from '../../requirements.js';
import {
  type Answer,
  deviceAnswer,
  type FakeIssuer,
  type IssuerRequest,
  refused,
  startFakeIssuer,
} from '../../support/fake-issuer.js';

const SCOPES = ['read:sandbox'];

interface Story extends AsyncDisposable {
  readonly clock: ManualClock;
  readonly issuer: FakeIssuer;
  readonly news: readonly WaitingNews[];
  /** Logs in, with time running as fast as the issuer answers. */
  login(signal?: AbortSignal): Promise<Tokens>;
}

/** A login in virtual time against a real server: `device` replaces members of the device answer. */
async function story(device: object, polls: readonly Answer[]): Promise<Story> {
  const clock = new ManualClock();
  const left = [...polls];
  const issuer = await startFakeIssuer({
    clock: () => clock.monotonic(),
    script: ({ path }) => {
      if (path === '/device/code') return { json: { ...deviceAnswer(issuer.url), ...device } };
      return path === '/token' ? left.shift() : undefined;
    },
  });
  const http = createHttp({ userAgent: 'test', clock: systemClock, logger: silentLogger });
  const news: WaitingNews[] = [];
  const login = async (signal?: AbortSignal): Promise<Tokens> => {
    const { url } = issuer;
    const connected = await connectIssuer({ url, clientId: 'ailsd-cli', http, clock });
    const code = await requestDeviceCode(connected, SCOPES, { signal });
    return awaitApproval(connected, code, SCOPES, { signal, news: (one) => news.push(one) });
  };
  return {
    clock,
    issuer,
    news,
    login: (signal) => runVirtually(clock, login(signal)),
    [Symbol.asyncDispose]: async () => {
      http[Symbol.dispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
}

const STEP_MS = 100;

/** Time passes only while somebody sleeps, so that a request takes none of it. */
async function runVirtually<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let ended = false;
  const end = (): void => {
    ended = true;
  };
  work.then(end, end);
  while (!ended) {
    if (clock.sleeping > 0) await clock.advance(STEP_MS);
    else await new Promise((resolve) => setImmediate(resolve));
  }
  return work;
}

function gaps(issuer: FakeIssuer): number[] {
  const begin = issuer.requests.find(({ path }) => path === '/device/code')?.at ?? Number.NaN;
  const times = [begin, ...polls(issuer).map(({ at }) => at)];
  return times.slice(1).map((time, index) => time - (times[index] ?? Number.NaN));
}

function polls(issuer: FakeIssuer): IssuerRequest[] {
  return issuer.grants('device_code');
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof AilsdError ? error.code : `not an AilsdError: ${String(error)}`;
}

const PENDING = refused('authorization_pending');
const SLOW_DOWN = refused('slow_down');

describe('polling', () => {
  const intervals = [
    { name: 'no interval', device: { interval: undefined }, interval: 5_000 },
    { name: 'interval 2', device: { interval: 2 }, interval: 2_000 },
    { name: 'interval 5', device: { interval: 5 }, interval: 5_000 },
  ];

  it(proves('keeps the pace of the issuer: 0 early polls in 100 logins', 'OA-01'), async () => {
    let early = 0;
    for (let login = 0; login < 100; login += 1) {
      const { device, interval } = intervals[login % intervals.length] ?? { interval: 0 };
      await using run = await story(device ?? {}, [
        PENDING,
        PENDING,
        SLOW_DOWN,
        SLOW_DOWN,
        PENDING,
        PENDING,
      ]);
      await run.login();
      const least = [0, 0, 0, 5_000, 10_000, 10_000, 10_000].map((more) => interval + more);
      const found = gaps(run.issuer);
      expect(found).toHaveLength(least.length);
      early += found.filter((gap, index) => gap < (least[index] ?? Number.NaN)).length;
      // Nor is it slower than it must be: a fifth more after the first slow_down, and the step of this test's clock.
      for (const [index, gap] of found.entries()) {
        expect(gap).toBeLessThanOrEqual((least[index] ?? 0) * 1.2 + STEP_MS);
      }
    }
    expect(early).toBe(0);
  });

  for (const interval of [0, -5, null]) {
    it(`takes an interval of ${interval} as 5 seconds`, async () => {
      await using run = await story({ interval }, [PENDING]);
      await run.login();
      expect(gaps(run.issuer)).toEqual([5_000, 5_000]);
    });
  }

  it('says that it was slowed, and by how much', async () => {
    await using run = await story({}, [SLOW_DOWN]);
    await run.login();
    expect(run.news).toEqual([{ kind: 'slowed', intervalMs: 12_000 }]);
  });
});

describe('endings', () => {
  it('a denial ends it at once', async () => {
    await using run = await story({}, [PENDING, refused('access_denied')]);
    expect(await codeOf(run.login())).toBe('LOGIN_DENIED');
    expect(polls(run.issuer)).toHaveLength(2);
  });

  it('expired_token ends it', async () => {
    await using run = await story({}, [refused('expired_token')]);
    expect(await codeOf(run.login())).toBe('LOGIN_EXPIRED');
  });

  it('the code runs out by the clock that never goes back, without the issuer saying so', async () => {
    await using run = await story({ expires_in: 12 }, [PENDING, PENDING, PENDING]);
    expect(await codeOf(run.login())).toBe('LOGIN_EXPIRED');
    expect(run.clock.monotonic()).toBeGreaterThanOrEqual(12_000);
    expect(run.clock.monotonic()).toBeLessThanOrEqual(17_000);
    expect(polls(run.issuer)).toHaveLength(2);
  });

  it('an abort ends it with its reason, and nothing sleeps on', async () => {
    await using run = await story({}, [PENDING, PENDING]);
    const controller = new AbortController();
    const reason = new Error('enough');
    run.issuer.script = ({ path }) => {
      if (path !== '/token') return undefined;
      setImmediate(() => controller.abort(reason));
      return PENDING;
    };
    await expect(run.login(controller.signal)).rejects.toBe(reason);
    expect(run.clock.sleeping).toBe(0);
  });

  it('an error the RFC does not know is LOGIN_FAILED', async () => {
    await using run = await story({}, [refused('invalid_grant', 'no such code')]);
    expect(await codeOf(run.login())).toBe('LOGIN_FAILED');
  });
});

describe('connection errors', () => {
  it('are waited out, the gap doubling up to 60 s, until the issuer is back', async () => {
    const html: Answer = { body: '<h1>Bad gateway</h1>', status: 500, type: 'text/html' };
    await using run = await story({}, ['cut', 'cut', 'cut', 'cut', html, PENDING]);
    await run.login();
    expect(gaps(run.issuer)).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 5_000]);
    expect(run.news.map(({ kind }) => kind)).toEqual(Array(5).fill('no-answer'));
  });

  it(
    proves('a token endpoint that refuses, is silent, and breaks is waited out', 'OA-03'),
    async () => {
      const clock = new ManualClock();
      const spare = await startFakeIssuer();
      const port = Number(new URL(spare.url).port);
      await spare[Symbol.asyncDispose]();
      const endpoints = { token_endpoint: `http://127.0.0.1:${port}/token` };
      await using issuer = await startFakeIssuer({ endpoints });
      using quick = createHttp({ userAgent: 'test', clock: systemClock, logger: silentLogger });
      // Silence is real, and so is the time it is given: short enough for a test.
      const http: Http = {
        request: (request) => quick.request({ ...request, timeoutMs: 200 }),
        json: (request) => quick.json(request),
        agentFor: (url) => quick.agentFor(url),
        [Symbol.dispose]: () => quick[Symbol.dispose](),
      };
      const answers: Answer[] = [
        'silence',
        { body: '<h1>500</h1>', status: 500, type: 'text/html' },
      ];
      const waits: number[] = [];
      let tokens: Promise<FakeIssuer> | undefined;
      const news = (one: WaitingNews): void => {
        if (one.kind !== 'no-answer') return;
        waits.push(one.nextInMs);
        // Three refusals, and then somebody is there.
        if (waits.length === 3) {
          tokens = startFakeIssuer({
            port,
            script: ({ path }) => (path === '/token' ? answers.shift() : undefined),
          });
        }
      };
      const { url } = issuer;
      const connected = await connectIssuer({ url, clientId: 'ailsd-cli', http, clock });
      const code = await requestDeviceCode(connected, SCOPES);
      const login = runVirtually(clock, awaitApproval(connected, code, SCOPES, { news }));
      try {
        expect((await login).accessToken.reveal()).toContain('.');
        expect(waits).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
      } finally {
        await (await tokens)?.[Symbol.asyncDispose]();
      }
    },
  );

  it('keep the pace that slow_down set', async () => {
    await using run = await story({}, [SLOW_DOWN, 'cut', PENDING]);
    await run.login();
    expect(gaps(run.issuer)).toEqual([5_000, 12_000, 24_000, 12_000]);
  });

  it('a rate limit is waited out as long as it asks', async () => {
    const limited: Answer = { json: {}, status: 429, headers: { 'retry-after': '30' } };
    await using run = await story({}, [limited, PENDING]);
    await run.login();
    expect(gaps(run.issuer)).toEqual([5_000, 30_000, 5_000]);
  });
});

describe('hostile device answers', () => {
  const hostile: [string, object][] = [
    ['a script as address', { verification_uri: 'javascript:alert(1)' }],
    ['a file as address', { verification_uri: 'file:///etc/passwd' }],
    ['plain http elsewhere', { verification_uri: 'http://example.com/device' }],
    ['a user in the address', { verification_uri: 'https://me@example.com/device' }],
    ['ESC in the address', { verification_uri: 'https://example.com/\u001b[31m' }],
    ['OSC 52 in the address', { verification_uri: 'https://example.com/\u001b]52;c;aGk=\u0007' }],
    ['CR in the address', { verification_uri: 'https://example.com/\r\nhttps://evil.example' }],
    ['C1 in the address', { verification_uri: 'https://example.com/\u009b31m' }],
    ['right-to-left override in the address', { verification_uri: 'https://example.com/\u202e' }],
    ['a script in the complete address', { verification_uri_complete: 'javascript:alert(1)' }],
    ['a code of 10 KB', { user_code: 'A'.repeat(10_240) }],
    ['ESC in the code', { user_code: 'AB\u001b[2J' }],
    ['no code', { user_code: undefined }],
    ['expires_in -1', { expires_in: -1 }],
    ['expires_in 1e12', { expires_in: 1e12 }],
    ['expires_in x', { expires_in: 'x' }],
    ['interval 1e9', { interval: 1e9 }],
    ['a device code that is no token', { device_code: 'a\u0000b' }],
  ];
  it.each(hostile)('%s: LOGIN_FAILED within a second', async (_, device) => {
    await using run = await story(device, []);
    const begin = performance.now();
    expect(await codeOf(run.login())).toBe('LOGIN_FAILED');
    expect(performance.now() - begin).toBeLessThan(1_000);
    expect(polls(run.issuer)).toHaveLength(0);
  });

  it.each([
    ['text', { body: 'hello', status: 200, type: 'text/plain' }],
    ['a list', { json: [] }],
    ['five megabytes', { json: { user_code: 'A'.repeat(5 << 20) } }],
  ] as const)('%s: LOGIN_FAILED', async (_, answer) => {
    await using run = await story({}, []);
    run.issuer.script = ({ path }) => (path === '/device/code' ? answer : undefined);
    expect(await codeOf(run.login())).toBe('LOGIN_FAILED');
  });
});

describe('hostile discovery', () => {
  it.each([
    ['another issuer', { issuer: 'https://evil.example' }],
    ['an endpoint elsewhere over plain http', { token_endpoint: 'http://example.com/token' }],
    ['a script as endpoint', { authorization_endpoint: 'javascript:alert(1)' }],
    ['an endpoint with a user', { token_endpoint: 'https://me@example.com/token' }],
  ])('%s: LOGIN_FAILED', async (_, endpoints) => {
    await using run = await story({}, []);
    const { script } = run.issuer;
    run.issuer.script = async (request) => {
      if (!request.path.startsWith('/.well-known')) return script?.(request);
      const { url } = run.issuer;
      return {
        json: {
          issuer: url,
          token_endpoint: `${url}/token`,
          jwks_uri: `${url}/jwks`,
          ...endpoints,
        },
      };
    };
    expect(await codeOf(run.login())).toBe('LOGIN_FAILED');
  });
});
