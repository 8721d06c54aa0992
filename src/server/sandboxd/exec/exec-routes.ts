/** Commands over HTTP: run one and wait or leave it, list them, look at one, read what it wrote, end it. */
import { onAbort } from '../../../base/abort.js';
import { AilsdError } from '../../../protocol/errors.js';
import { TIMEOUT_MAX_MS } from '../../../protocol/frame-fields.js';
import type { SandboxId } from '../../../protocol/ids.js';
import { type Output, parseRequest, type Schema } from '../../../protocol/parse.js';
import {
  commandLogQuery,
  type ExecRequest,
  execRequest,
} from '../../../protocol/shapes/commands.js';
import { PAGE_ITEMS, pageQuery } from '../../../protocol/shapes/envelope.js';
import { readJson } from '../../http/body.js';
import type { Answer } from '../../http/call.js';
import { readQuery } from '../../http/query.js';
import type { SandboxCall, SandboxRoutes } from '../door/routes.js';
import type { Command } from './command.js';
import { logOf } from './command-log.js';
import { toResult, toState } from './command-views.js';
import type { Commands, NewCommand } from './commands.js';
import { FILE_BYTES } from './output-log.js';

/** Input comes in the body. */
const BODY_MAX_BYTES = 2 * 1024 * 1024;
/** Of each output in an answer, unless the caller says; and at most. All that is kept can be read as a log. */
const INLINE_BYTES = 1024 * 1024;
const INLINE_MAX_BYTES = 8 * 1024 * 1024;

export function execRoutes(commands: Commands, sandboxId: SandboxId): SandboxRoutes['http'] {
  const find = ({ parameters }: SandboxCall): Command =>
    commands.get(parameters['command_id'] ?? '');
  return {
    exec: (call) => run(commands, sandboxId, call),
    listSandboxCommands: ({ exchange }) => {
      const { limit = PAGE_ITEMS.default, cursor } = query(pageQuery, exchange.request.url);
      return { body: page(commands.list(), limit, cursor, sandboxId) };
    },
    getSandboxCommand: (call) => ({ body: toState(find(call), sandboxId) }),
    getSandboxCommandLogs: (call) => {
      const asked = query(commandLogQuery, call.exchange.request.url);
      const { draining } = call.exchange;
      const signal = AbortSignal.any([call.signal, draining]);
      return {
        headers: { 'Content-Type': 'application/jsonl' },
        stream: logOf(find(call), asked, signal),
      };
    },
    endSandboxCommand: async (call) => {
      await until(find(call).end('asked'), call.signal);
      return { status: 204 };
    },
  };
}

async function run(commands: Commands, sandboxId: SandboxId, call: SandboxCall): Promise<Answer> {
  const body = await readJson(call.exchange.request, BODY_MAX_BYTES);
  const request = known(execRequest, body === undefined ? {} : body);
  const { command, isFresh } = await commands.run(wantedBy(request));
  call.exchange.note({ command_id: command.id });
  if (isFresh) {
    command.input(stdinOf(request), 0);
    command.endInput(undefined);
  }
  if (request.background === true) return { status: 202, body: toState(command, sandboxId) };
  // It goes on without whoever asked, and is found by its id.
  await until(command.ended, call.signal);
  const { stdout_max_bytes: stdout, stderr_max_bytes: stderr } = request;
  const inline = { stdout: inlineBytes(stdout), stderr: inlineBytes(stderr) };
  return { body: await toResult(command, sandboxId, inline) };
}

function wantedBy(request: ExecRequest): NewCommand {
  const { argv, command_id: id, cwd, env, timeout_ms: timeoutMs } = request;
  const { stdout_max_bytes: stdout, stderr_max_bytes: stderr } = request;
  return {
    argv,
    id,
    cwd,
    env,
    timeoutMs: timeoutMs === undefined ? undefined : clamp(timeoutMs, 1, TIMEOUT_MAX_MS),
    limits: { stdout: keptBytes(stdout), stderr: keptBytes(stderr) },
    keeps: 'all',
  };
}

function keptBytes(asked = FILE_BYTES): number {
  return clamp(asked, 0, FILE_BYTES);
}

function inlineBytes(asked = INLINE_BYTES): number {
  return clamp(asked, 0, INLINE_MAX_BYTES);
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, Math.floor(value)));
}

function stdinOf({ stdin = '', stdin_encoding: encoding }: ExecRequest): Uint8Array {
  if (encoding === undefined) return Buffer.from(stdin);
  const bytes = Buffer.from(stdin, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') === stdin.replace(/=+$/, '')) return bytes;
  throw new AilsdError('INVALID_REQUEST', 'the request: stdin must be base64', {
    details: { field: 'stdin' },
  });
}

/** Rejects when the signal aborts first. */
function until(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const callOff = onAbort(signal, () => reject(signal.reason));
    work.then(resolve, reject).finally(callOff);
  });
}

/** The latest first; a cursor is the id of the last one shown. */
function page(
  all: readonly Command[],
  limit: number,
  cursor: string | undefined,
  sandboxId: SandboxId,
): object {
  const latest = [...all].reverse();
  const from = cursor === undefined ? 0 : latest.findIndex(({ id }) => id === cursor) + 1;
  if (cursor !== undefined && from === 0)
    throw new AilsdError('INVALID_REQUEST', 'the request: cursor is not one of ours', {
      details: { field: 'cursor' },
    });
  const shown = latest.slice(from, from + limit);
  const last = shown.at(-1);
  const hasMore = from + limit < latest.length && last !== undefined;
  return {
    items: shown.map((command) => toState(command, sandboxId)),
    ...(hasMore ? { next_cursor: last.id } : {}),
  };
}

function query<S extends Schema>(schema: S, url = ''): Output<S> {
  return known(schema, readQuery(url));
}

function known<S extends Schema>(schema: S, value: unknown): Output<S> {
  const parsed = parseRequest(schema, value);
  if (parsed.ok) return parsed.value;
  throw parsed.error;
}
