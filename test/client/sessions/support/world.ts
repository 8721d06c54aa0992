/** What the client's sessions need, with a token from a variable and a cache of its own. */

import { type Clock, systemClock } from '../../../../src/base/clock.js';
import { silentLogger } from '../../../../src/base/logger.js';
import { createHttp, type Http } from '../../../../src/client/http/http.js';
import type { SessionWorld } from '../../../../src/client/sessions/world.js';
import { eventually } from '../../../support/eventually.js';

export interface WorldOptions {
  readonly url: string;
  readonly clock?: Clock;
  readonly cacheFolder?: string;
  readonly given?: string;
  readonly token?: string;
}

export interface TestWorld extends SessionWorld, Disposable {
  readonly traces: string[];
  /** Waits until no request is under way. */
  settled(): Promise<void>;
}

export function sessionWorld(options: WorldOptions): TestWorld {
  const http = createHttp({ userAgent: 'test', clock: systemClock, logger: silentLogger });
  let underWay = 0;
  const counted: Http = {
    json: (request) => http.json(request),
    agentFor: (url) => http.agentFor(url),
    request: async (request) => {
      underWay += 1;
      try {
        return await http.request(request);
      } finally {
        underWay -= 1;
      }
    },
    [Symbol.dispose]: () => http[Symbol.dispose](),
  };
  const traces: string[] = [];
  const { given } = options;
  return {
    url: () => options.url,
    // Not a JWT: it says nothing about its end, so that a clock may be moved by hand.
    variable: (name) => (name === 'AILSD_TOKEN' ? (options.token ?? 'opaque-access') : undefined),
    openStore: () => Promise.reject(new Error('no store is needed')),
    configFolder: undefined,
    userId: process.getuid?.(),
    http: async () => counted,
    clock: options.clock ?? systemClock,
    cacheFolder: options.cacheFolder,
    givenAccess: () => (given === undefined ? undefined : { text: given, from: 'AILSD_SANDBOX' }),
    random: () => 0.5,
    trace: (text) => traces.push(text),
    traces,
    settled: () => eventually(() => underWay === 0),
    [Symbol.dispose]: () => http[Symbol.dispose](),
  };
}
