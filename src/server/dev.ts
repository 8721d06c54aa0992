/** A whole server for one user on this machine: made if it is not there, with a login at hand, and sandboxes that end with it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Scope } from '../base/scope.js';
import { DEFAULT_TENANT } from '../protocol/claims.js';
import { AilsdError } from '../protocol/errors.js';
import { LOGIN_SCOPES } from '../protocol/scopes.js';
import { openServer } from './compose.js';
import { CONFIG_FILE, type ServerConfig } from './config.js';
import type { Inputs } from './operations/config.js';
import { freshId } from './operations/data-folder.js';
import { init } from './operations/init.js';
import { configOf, inPlace, type World } from './operations/place.js';
import { type LocalProvider, openLocalProvider } from './providers/local/local-provider.js';
import { openIsolation } from './sandboxd/isolation/open-isolation.js';
import { makeFolders } from './store/make-folders.js';
import { Users } from './store/users.js';

export interface DevServer extends AsyncDisposable {
  /** What whoever started it needs to talk to it. */
  readonly ready: object;
}

/** No stack of this kind runs longer. */
const LOGIN_SECONDS = 30 * 86_400;
const CLOSE_TIMEOUT_MS = 10_000;

export async function openDevServer(
  { dir, user }: Inputs['dev'],
  { world, daemonProgram }: { readonly world: World; readonly daemonProgram: string },
): Promise<DevServer> {
  const { clock, logger } = world;
  const report = (name: string, error: unknown): void => logger.error(name, { error });
  const scope = new Scope({ clock, report, closeTimeoutMs: CLOSE_TIMEOUT_MS });
  try {
    if (!existsSync(join(dir, CONFIG_FILE))) await init({ dir }, world);
    const userId = await findOrAddUser(dir, user, world);
    const config = await configOf(dir, world, { listen: '127.0.0.1:0' });
    const { memoryBytes, pids } = config.local;
    const { isolation, warning } = await chooseIsolation(config.local, world);
    const local = await openLocalProvider({
      dir: config.local.dir,
      isolation,
      daemonProgram,
      node: process.execPath,
      clock,
      limits: { memoryBytes, pids },
    });
    // After the server, which may still be talking to it.
    scope.defer(() => endSandboxes(local));
    const server = scope.use(await openServer({ config, clock, logger, providers: [local] }));
    const refreshToken = await server.logIn(userId, LOGIN_SECONDS);
    return {
      ready: {
        url: server.url,
        port: server.port,
        refresh_token: refreshToken.reveal(),
        ...(warning && { warning }),
      },
      [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose](),
    };
  } catch (error) {
    await scope[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * A server for others refuses to work without isolation. Here it is one's own machine, and one's own programs: it works, and says so.
 */
async function chooseIsolation(
  { isolation, dir }: ServerConfig['local'],
  { clock, logger }: World,
): Promise<{ readonly isolation: typeof isolation; readonly warning?: string }> {
  if (isolation !== 'auto') return { isolation };
  await makeFolders(dir);
  try {
    await openIsolation({ wanted: 'auto', dir, clock, logger, platform: process.platform });
    return { isolation };
  } catch (error) {
    if (!(error instanceof AilsdError)) throw error;
    return { isolation: 'none', warning: error.message };
  }
}

function findOrAddUser(dir: string, name: string, world: World): Promise<string> {
  return inPlace(dir, world, async ({ db }) => {
    const users = new Users(db);
    const id = freshId('usr');
    await users.add({ id, tenant: DEFAULT_TENANT, name, scopes: [...LOGIN_SCOPES] });
    const user = await users.findByName(DEFAULT_TENANT, name);
    if (user !== undefined) return user.id;
    throw new AilsdError('INTERNAL', 'the user of this stack could not be made');
  });
}

async function endSandboxes(local: LocalProvider): Promise<void> {
  await local.shutDown(AbortSignal.timeout(CLOSE_TIMEOUT_MS));
}
