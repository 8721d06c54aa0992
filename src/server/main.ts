/** The server program: `OPERATION` in its argument, one JSON document on stdin, one on stdout, errors as the envelope on stderr. */
import { writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../base/clock.js';
import { createLogger } from '../base/logger.js';
import { AilsdError } from '../protocol/errors.js';
import { processVariables } from './config.js';
import { toAilsdError } from './http/errors.js';
import { type Inputs, isOperationName, parseInput } from './operations/config.js';
import { InputLine } from './operations/input-line.js';
import { LogSink } from './operations/log-sink.js';
import { runOperation } from './operations/operations.js';
import { configOf, type World } from './operations/place.js';

const LAST_WORDS_MS = 1_000;

async function run(word: string): Promise<void> {
  if (!isOperationName(word)) throw new AilsdError('USAGE', `there is no operation '${word}'`);
  const input = new InputLine(process.stdin);
  const given = parseJson(await input.line());
  if (word === 'start') return start(parseInput('start', given), input.ended);
  if (word === 'dev') return dev(parseInput('dev', given), input.ended);
  input.close();
  say(await runOperation(word, given, worldOf('warn')));
}

/** Serves until it is asked to end: by a signal, or by the end of stdin, which also comes when the parent dies. */
async function start(
  { dir, ...said }: { dir: string; listen?: string | undefined; url?: string | undefined },
  parentGone: Promise<void>,
): Promise<void> {
  const asked = askedToEnd(parentGone);
  const config = await configOf(dir, worldOf('warn'), said);
  const { clock, logger } = worldOf(config.logLevel);
  const { openServer } = await import('./compose.js');
  await using server = await openServer({ config, clock, logger, daemonProgram: daemonProgram() });
  say({ url: server.url, pid: process.pid, port: server.port });
  logger.info('serving', { url: server.url, pid: process.pid });
  logger.info('ending', { reason: await asked });
}

/** The same for a stack of one user: with a login in the first line, and with sandboxes that end with it. */
async function dev(given: Inputs['dev'], parentGone: Promise<void>): Promise<void> {
  const asked = askedToEnd(parentGone);
  const { openDevServer } = await import('./dev.js');
  const world = worldOf('warn');
  await using server = await openDevServer(given, { world, daemonProgram: daemonProgram() });
  say({ ...server.ready, pid: process.pid });
  await asked;
}

function askedToEnd(parentGone: Promise<void>): Promise<string> {
  return new Promise<string>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
      process.on(signal, () => resolve(signal));
    parentGone.then(() => resolve('end of input'));
  });
}

/** Built beside this program. */
function daemonProgram(): string {
  return fileURLToPath(new URL('./ailsd-sandboxd.mjs', import.meta.url));
}

const sink = new LogSink(2);

function worldOf(level: 'debug' | 'info' | 'warn' | 'error'): World {
  const logger = createLogger({ write: sink.write, clock: systemClock, level });
  return { variables: processVariables(), clock: systemClock, logger };
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new AilsdError('USAGE', 'standard input holds no JSON document');
  }
}

function say(document: object): void {
  writeSync(1, `${JSON.stringify(document)}\n`);
}

async function fail(thrown: unknown): Promise<void> {
  const error = toAilsdError(thrown);
  const { code, details } = error;
  const { message, hint } = forOperator(error);
  const { retryable, exit } = error.row;
  if (code === 'INTERNAL') worldOf('error').logger.error('failed', { error: thrown });
  const envelope = { error: { ...details, code, message, retryable, exit_code: exit, hint } };
  sink.write(`${JSON.stringify(envelope)}\n`);
  process.exitCode = exit;
}

/** Whoever reads this runs the server: they hear what callers must not. */
function forOperator({ code, message, hint, internal }: AilsdError): {
  message: string;
  hint: string;
} {
  if (code !== 'BACKEND_UNAVAILABLE' || internal === undefined) return { message, hint };
  return {
    message: `${message} (${internal})`,
    hint: 'check that it runs, and the store in server.json, AILSD_SERVER_STORE or --store',
  };
}

/** A mistake of ours in some callback: said like any error, and the process ends. */
function endOnUnexpected(): void {
  const end = (thrown: unknown): void => {
    void fail(thrown)
      .then(() => sink.flush(LAST_WORDS_MS))
      .finally(() => process.exit());
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
}

endOnUnexpected();
run(process.argv[2] ?? '')
  .catch(fail)
  .then(() => sink.flush(LAST_WORDS_MS))
  .finally(() => process.exit());
