/** The control channel: HTTP and JSON over a socket file that only the daemon's own account can open. For providers, never for clients. */
import { chmod, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Logger } from '../../../base/logger.js';
import { AilsdError } from '../../../protocol/errors.js';
import type { SandboxId } from '../../../protocol/ids.js';
import { parse } from '../../../protocol/parse.js';
import { sandboxId } from '../../../protocol/shapes/fields.js';
import type { DaemonHealth } from '../../../protocol/shapes/sandboxd.js';
import { toAilsdError } from '../../http/errors.js';
import type { Daemon } from '../daemon.js';
import { writeWantedState } from './wanted-state.js';

export interface ControlOptions {
  /** The daemon's folder, which must be this process's own. */
  readonly dir: string;
  readonly daemon: Daemon;
  readonly health: DaemonHealth;
  readonly logger: Logger;
  /** Called after the answer was sent. */
  readonly shutdown: () => void;
}

export async function openControl(options: ControlOptions): Promise<AsyncDisposable> {
  const path = join(options.dir, 'control.sock');
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) {
    throw new AilsdError('CONFIG_INVALID', 'the path of the folder is too long for a socket', {
      hint: `choose a folder whose path has at most ${MAX_SOCKET_PATH_BYTES - 13} bytes`,
    });
  }
  const server = createServer({ requestTimeout: REQUEST_MS }, (request, response) => {
    void answer(options, request, response);
  });
  server.maxHeadersCount = 32;
  // Whoever held the folder before is dead: so is its socket.
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // Its folder is 0700: nobody else reaches it in the moment before it is 0600 itself.
    server.listen(path, resolve);
  });
  await chmod(path, 0o600);
  return {
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const REQUEST_MS = 10_000;
/** Of what every system takes (unix(7)). */
const MAX_SOCKET_PATH_BYTES = 100;

async function answer(
  options: ControlOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  request.resume();
  const { method = '', url = '' } = request;
  let status = 200;
  let body: unknown;
  try {
    body = await route(options, method, url.split('/').slice(1));
  } catch (thrown) {
    const { code, message, details, row } = toAilsdError(thrown);
    status = row.status;
    body = { error: { ...details, code, message, retryable: row.retryable } };
    options.logger.warn('a control request failed', { method, url, error: thrown });
  }
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body ?? {}));
}

async function route(
  options: ControlOptions,
  method: string,
  [place = '', name, ...rest]: readonly string[],
): Promise<unknown> {
  const verb = `${method} ${[place, name === undefined ? '' : '{id}', ...rest].filter(Boolean).join('/')}`;
  const { daemon, health } = options;
  switch (verb) {
    case 'GET health':
      return health;
    case 'GET sandboxes':
      return { items: daemon.views() };
    case 'POST shutdown':
      setImmediate(options.shutdown);
      return {};
    case 'GET sandboxes/{id}':
      return daemon.view(toId(name)) ?? noSuchSandbox();
    case 'PUT sandboxes/{id}': {
      const view = await daemon.load(toId(name));
      await writeWantedState(folderOf(options, view.id), 'running');
      return view;
    }
    case 'DELETE sandboxes/{id}':
      return daemon.remove(toId(name));
    case 'POST sandboxes/{id}/stop': {
      const id = toId(name);
      await writeWantedState(folderOf(options, id), 'stopped');
      return daemon.stop(id);
    }
    case 'POST sandboxes/{id}/access':
      return daemon.reloadAccess(toId(name));
    default:
      throw new AilsdError('NOT_FOUND', 'the control channel has no such request');
  }
}

function folderOf({ dir }: ControlOptions, id: SandboxId): string {
  return join(dir, 'sandboxes', id);
}

function toId(name = ''): SandboxId {
  const parsed = parse(sandboxId, name, 'INVALID_REQUEST', 'the path: ');
  if (parsed.ok) return parsed.value;
  throw parsed.error;
}

function noSuchSandbox(): never {
  throw new AilsdError('NOT_FOUND', 'there is no such sandbox');
}
