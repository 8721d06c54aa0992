/** The daemon's program: one JSON document on stdin, one line on stdout when it serves, then its log on stderr. */
import { webcrypto } from 'node:crypto';
import { writeSync } from 'node:fs';
import { systemClock } from '../../base/clock.js';
import { createDeferred } from '../../base/deferred.js';
import { errorCode } from '../../base/error-code.js';
import { createLogger, type LogLevel } from '../../base/logger.js';
import { AilsdError } from '../../protocol/errors.js';
import { VERSION } from '../../protocol/version.js';
import { toAilsdError } from '../http/errors.js';
import { parseDaemonConfig } from './config.js';
import { rememberedPort } from './control/daemon-file.js';
import { ownFolder } from './control/owned-folder.js';
import { serveFolder } from './control/serve-folder.js';
import { type DaemonParts, openDaemon, type RunningDaemon } from './daemon.js';
import { openIsolation } from './isolation/open-isolation.js';

const INPUT_MAX_BYTES = 256 * 1024;

async function run(): Promise<void> {
  const config = parseDaemonConfig(parseJson(await readInput()));
  const asked = createDeferred<string>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => asked.resolve(signal));
  }
  // Whoever started it may close its terminal: that is no reason to end.
  process.on('SIGHUP', () => undefined);
  const logger = loggerOf(config.logLevel);
  const clock = systemClock;
  const { dir } = config;
  await using folder = config.sandbox === undefined ? await ownFolder(dir) : undefined;
  if (config.sandbox === undefined && folder === undefined) {
    logger.info('another daemon serves this folder');
    return;
  }
  const isolation = await openIsolation({
    wanted: config.isolation,
    dir,
    clock,
    logger,
    platform: process.platform,
  });
  const random = (bytes: Uint8Array<ArrayBuffer>) => webcrypto.getRandomValues(bytes);
  await using daemon = await openAtUsualPort({ config, isolation, clock, logger, random });
  const { url, port } = daemon;
  const health = { pid: process.pid, version: VERSION, port, isolation: daemon.isolation };
  const end = asked.resolve;
  await using _control =
    folder && (await serveFolder({ folder, daemon, health, clock, logger, end }));
  writeSync(1, `${JSON.stringify({ url, pid: process.pid, port, isolation: daemon.isolation })}\n`);
  logger.info('serving', { url, pid: process.pid });
  logger.info('ending', { reason: await asked.promise });
}

/** The one its folder was reached at before, if nobody else has it now. */
async function openAtUsualPort(parts: DaemonParts): Promise<RunningDaemon> {
  const { config } = parts;
  const isFree = config.sandbox === undefined && config.port === 0;
  const port = isFree ? await rememberedPort(config.dir) : config.port;
  try {
    return await openDaemon({ ...parts, config: { ...config, port } });
  } catch (error) {
    if (port === config.port || errorCode(error) !== 'EADDRINUSE') throw error;
    return openDaemon(parts);
  }
}

function loggerOf(level: LogLevel) {
  return createLogger({ write: (line) => process.stderr.write(line), clock: systemClock, level });
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    if (length > INPUT_MAX_BYTES) throw new AilsdError('USAGE', 'standard input is too long');
    if (bytes.includes(NEWLINE)) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}

const NEWLINE = 0x0a;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AilsdError('USAGE', 'standard input holds no JSON document');
  }
}

function fail(thrown: unknown): void {
  const error = toAilsdError(thrown);
  const { code, message, details, hint } = error;
  const { retryable, exit } = error.row;
  if (code === 'INTERNAL') loggerOf('error').error('failed', { error: thrown });
  const envelope = { error: { ...details, code, message, retryable, exit_code: exit, hint } };
  process.stderr.write(`${JSON.stringify(envelope)}\n`);
  process.exitCode = exit;
}

process.on('uncaughtException', (thrown) => {
  fail(thrown);
  process.exit();
});
process.on('unhandledRejection', (thrown) => {
  fail(thrown);
  process.exit();
});
run()
  .catch(fail)
  .finally(() => process.exit());
