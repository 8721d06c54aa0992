/** What logging in and using a login need from outside; whatever is slow to make is made when it is first asked for. */
import type { Clock } from '../../base/clock.js';
import type { ChosenStore } from '../credentials/choose-store.js';
import type { Variables } from '../credentials/headless.js';
import type { Http } from '../http/http.js';

export interface AuthWorld {
  /** The server, which is also the issuer. Throws where none is set. */
  readonly url: () => string;
  /** Variables as they are: one that is set to nothing is the empty text. */
  readonly variable: Variables;
  readonly openStore: (purpose: 'use' | 'login') => Promise<ChosenStore>;
  /** Where the locks between processes are; absent where there is no home. */
  readonly configFolder: string | undefined;
  /** Who we are, for judging whose files we read; absent where the platform has no user ids. */
  readonly userId: number | undefined;
  /** The same one each time; whoever made the world closes it. */
  readonly http: () => Promise<Http>;
  readonly clock: Clock;
}
