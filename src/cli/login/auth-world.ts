/** What the client's login needs, made of this command's settings and surroundings. Nothing slow is made before it is used. */
import { join } from 'node:path';
import { systemClock } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import type { AuthWorld } from '../../client/auth/world.js';
import { chooseStore } from '../../client/credentials/choose-store.js';
import type { Http } from '../../client/http/http.js';
import { AilsdError } from '../../protocol/errors.js';
import { VERSION } from '../../protocol/version.js';
import type { Context } from '../context.js';

export function createAuthWorld(context: Context): AuthWorld & Disposable {
  const { environment, settings } = context;
  let http: Promise<Http> | undefined;
  return {
    url: () => serverUrl(context),
    variable: environment.exactVariable,
    configFolder: environment.configFolder,
    userId: environment.userId,
    clock: systemClock,
    openStore: (purpose) =>
      chooseStore({
        purpose,
        wanted: storeWanted(settings.find('credential_store')?.value),
        configFolder: environment.configFolder,
        variable: environment.variable,
        platform: environment.platform,
        userId: environment.userId,
        // Built beside this program.
        keychainProgram: join(import.meta.dirname, 'probe-keychain.cjs'),
        clock: systemClock,
      }),
    http: () => {
      http ??= openHttp(context);
      return http;
    },
    [Symbol.dispose]: () => {
      http?.then(
        (made) => made[Symbol.dispose](),
        () => undefined,
      );
    },
  };
}

export function serverUrl({ settings }: Context): string {
  const url = settings.find('url')?.value;
  if (url !== undefined) return url;
  throw new AilsdError('CONFIG_INVALID', 'no server is set', {
    details: { setting: 'url' },
    hint: 'set one with `ailsd config set url URL`, --url or AILSD_URL',
  });
}

function storeWanted(value: string | undefined): Parameters<typeof chooseStore>[0]['wanted'] {
  return value === 'keyring' || value === 'file' || value === 'memory' ? value : 'auto';
}

async function openHttp({ settings, environment, debug, io }: Context): Promise<Http> {
  const [{ createHttp }, { proxySettings }] = await Promise.all([
    import('../../client/http/http.js'),
    import('../../client/http/proxy.js'),
  ]);
  return createHttp({
    proxy: proxySettings(environment.variable),
    caFile: settings.find('ca_file')?.value,
    userAgent: `ailsd/${VERSION}`,
    clock: systemClock,
    logger: debug ? await debugLogger(io) : undefined,
  });
}

async function debugLogger({ err }: Context['io']): Promise<Logger> {
  const { createLogger } = await import('../../base/logger.js');
  const write = (line: string): void => err.write(line);
  return createLogger({ write, clock: systemClock, level: 'debug' });
}
