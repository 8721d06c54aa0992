/** What `doctor` looks at on this machine, in the order it is printed. */

import { mkdtempSync, readFileSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorCode } from '../../base/error-code.js';
import type { Context } from '../context.js';
import { wantsColour } from '../style.js';
import type { Check, Finding } from './check.js';
import { runProbe } from './probe.js';
import { checkLogin, checkServer, clockDifference } from './server-checks.js';

export const CHECKS: readonly Check[] = [
  { name: 'node', run: checkNode },
  { name: 'settings', run: checkSettings },
  { name: 'server', run: checkServer },
  { name: 'clock', run: checkClock },
  { name: 'login', run: checkLogin },
  { name: 'terminal', run: checkTerminal },
  { name: 'pty', run: checkPty },
  { name: 'keychain', run: checkKeychain },
  { name: 'watching', run: checkWatching },
];

const NODE_FLOOR = [20, 19] as const;

function checkNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const recent = major > NODE_FLOOR[0] || (major === NODE_FLOOR[0] && minor >= NODE_FLOOR[1]);
  const detail = `node ${process.versions.node} at ${process.execPath}`;
  if (recent) return { state: 'ok', detail };
  return { state: 'failed', detail, hint: `install Node ${NODE_FLOOR.join('.')} or newer` };
}

function checkSettings({ settings }: Context): Finding {
  const url = settings.find('url');
  const profile = settings.profile.value;
  if (url !== undefined) return { state: 'ok', detail: `profile ${profile}, server ${url.value}` };
  return {
    state: 'warning',
    detail: `profile ${profile}, no server`,
    hint: 'run `ailsd config set url URL`',
  };
}

const FAST_CLOCK_MS = 5 * 60_000;

/** By the server's, where it says; else by this: nothing on this machine can have been written in the future. */
async function checkClock(context: Context): Promise<Finding> {
  const compared = await clockDifference(context);
  if (compared !== undefined) return compared;
  const detail = new Date().toISOString();
  const behindMs = statSync(import.meta.filename).mtimeMs - Date.now();
  if (behindMs < FAST_CLOCK_MS) return { state: 'ok', detail };
  return {
    state: 'failed',
    detail: `${detail}, which is before this program was written to disk`,
    hint: 'set the clock: tokens are only valid near the right time',
  };
}

function checkTerminal({ io, environment }: Context): Finding {
  if (!io.out.isTerminal || !io.inputIsTerminal) {
    return { state: 'skipped', detail: 'no terminal: `attach` needs one, `exec` does not' };
  }
  const { columns, rows } = process.stdout;
  const term = environment.variable('TERM') ?? (environment.platform === 'win32' ? 'windows' : '');
  const colour = wantsColour(io.out, environment) ? 'colour' : 'no colour';
  const detail = `${term || 'no TERM'}, ${columns}x${rows}, ${colour}`;
  if (term === '' || term === 'dumb') {
    return {
      state: 'warning',
      detail,
      hint: 'set TERM to what your terminal is, e.g. xterm-256color',
    };
  }
  const locale = ['LC_ALL', 'LC_CTYPE', 'LANG']
    .map(environment.variable)
    .find((one) => one !== undefined);
  if (environment.platform !== 'win32' && !/utf-?8/i.test(locale ?? '')) {
    return {
      state: 'warning',
      detail: `${detail}, locale ${locale ?? 'not set'}`,
      hint: 'set LANG=C.UTF-8, or non-ASCII text may look wrong',
    };
  }
  return { state: 'ok', detail };
}

async function checkPty({ signal }: Context): Promise<Finding> {
  const answer = await runProbe('probe-pty', signal);
  if (answer.kind === 'works') return { state: 'ok', detail: 'a PTY opens and carries output' };
  const why = answer.kind === 'hangs' ? 'it never answered' : answer.reason;
  return {
    state: 'warning',
    detail: `no PTY: ${why}`,
    hint: 'only servers on this machine need it; reinstall ailsd without --omit=optional',
  };
}

async function checkKeychain({ settings, environment, signal }: Context): Promise<Finding> {
  const store = wantedStore(settings);
  if (store === 'file' || store === 'memory') {
    return { state: 'skipped', detail: `not used: logins are kept in ${store}` };
  }
  // Without an address the library would start a bus of its own; there is nothing to find then.
  if (
    environment.platform === 'linux' &&
    environment.variable('DBUS_SESSION_BUS_ADDRESS') === undefined
  ) {
    return noKeychain('no D-Bus session', store);
  }
  const answer = await runProbe('probe-keychain', signal);
  if (answer.kind === 'works') return { state: 'ok', detail: 'write, read and delete work' };
  return noKeychain(answer.kind === 'hangs' ? 'it never answered' : answer.reason, store);
}

/** Settings that can't be read are the finding of another check. */
function wantedStore(settings: Context['settings']): string {
  try {
    return settings.find('credential_store')?.value ?? 'auto';
  } catch {
    return 'auto';
  }
}

function noKeychain(why: string, store: string): Finding {
  const detail = `no keychain: ${why}`;
  if (store === 'keyring') {
    return { state: 'failed', detail, hint: 'unlock it, or set AILSD_CREDENTIAL_STORE=file' };
  }
  return { state: 'warning', detail, hint: 'logins would be kept in a file only you can read' };
}

const FEW_WATCHES = 65_536;

async function checkWatching({ environment, signal }: Context): Promise<Finding> {
  const broken = await whyNotWatching(signal);
  if (broken !== undefined) return broken;
  if (environment.platform !== 'linux')
    return { state: 'ok', detail: 'changes of files are reported' };
  const watches = Number(readFileSync('/proc/sys/fs/inotify/max_user_watches', 'utf8'));
  const detail = `changes of files are reported, up to ${watches} folders`;
  if (watches >= FEW_WATCHES) return { state: 'ok', detail };
  return {
    state: 'warning',
    detail,
    hint: `sysctl fs.inotify.max_user_watches=${FEW_WATCHES * 8}`,
  };
}

const WATCH_TIMEOUT_MS = 1_000;

/** Makes a folder, watches it, writes into it: the only proof that counts. */
async function whyNotWatching(signal: AbortSignal): Promise<Finding | undefined> {
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), 'ailsd-doctor-'));
    if (await reportsChanges(folder, signal)) return undefined;
    return notWatching('changes of files are not reported', 'sync will look for changes by itself');
  } catch (error) {
    const code = errorCode(error) ?? String(error);
    if (folder === undefined) {
      return notWatching(
        `no temporary folder (${code})`,
        'set TMPDIR to a folder you can write to',
      );
    }
    return notWatching(
      `folders cannot be watched (${code})`,
      'raise fs.inotify.max_user_instances',
    );
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function notWatching(detail: string, hint: string): Finding {
  return { state: 'warning', detail, hint };
}

function reportsChanges(folder: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const watcher = watch(folder, { signal }, () => done(true));
    const timer = setTimeout(() => done(false), WATCH_TIMEOUT_MS);
    watcher.on('error', () => done(false));
    const done = (works: boolean): void => {
      clearTimeout(timer);
      watcher.close();
      resolve(works);
    };
    writeFileSync(join(folder, 'probe'), '');
  });
}
