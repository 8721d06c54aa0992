/** The stack itself: the server program as a child, a login in a folder of its own, and the variables that lead to both. */
import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.js';
import { Secret } from '../../base/secret.js';
import { redeemLogin } from '../../client/auth/redeem-login.js';
import { makeFolders } from '../../client/credentials/make-folders.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';
import { createAuthWorld } from '../login/auth-world.js';
import { type Document, errorFrom, parseLine } from '../server/document.js';
import { endOf, type ServerProcess, startProgram } from '../server/program.js';

export interface Stack extends AsyncDisposable {
  readonly url: string;
  /** Makes any other `ailsd` talk to it. */
  readonly env: Readonly<Record<string, string>>;
  readonly configFolder: string;
  /** Where the sandboxes and their files are. */
  readonly sandboxesFolder: string;
  /** Why its programs are not kept apart from this machine. */
  readonly warning: string | undefined;
}

export async function openStack(context: Context, folder: string, thread: string): Promise<Stack> {
  const server = join(folder, 'server');
  const child = startProgram('dev', { dir: server, user: userName() });
  const close = closing(child);
  try {
    const ready = await firstLine(child, context.signal);
    const url = textOf(ready, 'url');
    const configFolder = join(folder, 'config');
    makeFolders(configFolder);
    using world = createAuthWorld(context);
    await redeemLogin({
      url,
      refreshToken: new Secret(textOf(ready, 'refresh_token')),
      folder: configFolder,
      userId: context.environment.userId,
      http: await world.http(),
      clock: systemClock,
      signal: context.signal,
    });
    const profile = { url, thread, credential_store: 'file' };
    const settings = { profiles: { default: profile } };
    writeFileSync(join(configFolder, 'config.json'), JSON.stringify(settings), { mode: 0o600 });
    return {
      url,
      configFolder,
      sandboxesFolder: join(server, 'local', 'sandboxes'),
      warning: typeof ready['warning'] === 'string' ? ready['warning'] : undefined,
      env: {
        AILSD_URL: url,
        AILSD_THREAD: thread,
        AILSD_CONFIG_DIR: configFolder,
        AILSD_CACHE_DIR: join(folder, 'cache'),
        AILSD_CREDENTIAL_STORE: 'file',
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The end of its input is the wish to end; what it has begun it cleans up. */
function closing(child: ServerProcess): () => Promise<void> {
  const ended = endOf(child);
  // It is waited for in the end; until then its ending is told by its silence.
  ended.catch(() => undefined);
  return async () => {
    child.stdin.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_TIMEOUT_MS);
    await ended.catch(() => undefined);
    clearTimeout(timer);
  };
}

const CLOSE_TIMEOUT_MS = 15_000;
const MOST_LAST_WORDS = 64 * 1024;

/** What it logs is kept for the case that it never gets ready. */
function firstLine(child: ServerProcess, signal: AbortSignal): Promise<Document> {
  return new Promise((resolve, reject) => {
    let text = '';
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      log = (log + chunk).slice(-MOST_LAST_WORDS);
    });
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const end = text.indexOf('\n');
      const document = end === -1 ? undefined : parseLine(text.slice(0, end));
      if (document !== undefined) resolve(document);
    });
    child.on('error', reject);
    child.on('close', () => reject(errorFrom(log)));
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function textOf(document: Document, name: string): string {
  const value = document[name];
  if (typeof value === 'string') return value;
  throw new AilsdError('INTERNAL', `the server program did not say its ${name}`);
}

/** As on this machine, where that can be a name. */
function userName(): string {
  try {
    const { username } = userInfo();
    if (/^[^\s\p{C}]{1,128}$/u.test(username)) return username;
  } catch {
    // There are containers whose user has no name.
  }
  return 'you';
}
