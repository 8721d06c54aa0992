/** A session bus and a gnome-keyring of a test's own: real ones, in a folder of their own, gone afterwards. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Why tests with a real keychain can't run here, if they can't. */
export const NO_KEYRING: string | undefined = ['dbus-daemon', 'dbus-send', 'gnome-keyring-daemon']
  .filter((program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error !== undefined)
  .map((program) => `no ${program === 'gnome-keyring-daemon' ? 'gnome-keyring' : program}`)[0];

export interface Session extends AsyncDisposable {
  readonly folder: string;
  /** What a program needs to find this bus, and nothing of the machine's own. */
  readonly variables: Readonly<Record<string, string>>;
  /** Starts the secret service; `locked` where nobody has given the password of the collection that is there. */
  startKeyring(state: 'unlocked' | 'locked'): Promise<Keyring>;
}

export interface Keyring {
  /** Holds it still: calls are accepted by the bus and never answered. */
  freeze(): void;
  /** Where it keeps its collections. */
  readonly folder: string;
  end(): Promise<void>;
}

/** A bus that starts nothing by itself: a service is there only if the test started it. */
export async function startSession(): Promise<Session> {
  const folder = mkdtempSync(join(tmpdir(), 'ailsd-bus-'));
  const config = join(folder, 'bus.conf');
  writeFileSync(config, busConfig(folder));
  for (const name of ['data', 'run', 'home']) mkdirSync(join(folder, name), { mode: 0o700 });
  const bus = spawn('dbus-daemon', ['--nofork', '--print-address=1', `--config-file=${config}`], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const running: ChildProcess[] = [bus];
  const [line]: unknown[] = await once(bus.stdout, 'data');
  const variables = {
    PATH: '/usr/bin:/bin',
    HOME: join(folder, 'home'),
    XDG_RUNTIME_DIR: join(folder, 'run'),
    XDG_DATA_HOME: join(folder, 'data'),
    DBUS_SESSION_BUS_ADDRESS: String(line).trim(),
  };
  return {
    folder,
    variables,
    async startKeyring(state) {
      const keyring = spawnKeyring(variables, state);
      running.push(keyring);
      await serviceAppears(variables);
      return {
        freeze: () => keyring.kill('SIGSTOP'),
        folder: join(folder, 'data', 'keyrings'),
        end: () => end(keyring),
      };
    },
    async [Symbol.asyncDispose]() {
      for (const child of running.reverse()) await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function spawnKeyring(env: Readonly<Record<string, string>>, state: string): ChildProcess {
  const unlock = state === 'unlocked' ? ['--unlock'] : [];
  const keyring = spawn(
    'gnome-keyring-daemon',
    ['--foreground', '--components=secrets', ...unlock],
    { env, stdio: ['pipe', 'ignore', 'ignore'] },
  );
  keyring.stdin.end(state === 'unlocked' ? 'a password' : '');
  return keyring;
}

const WAIT_MS = 10_000;

async function serviceAppears(env: Readonly<Record<string, string>>): Promise<void> {
  const question = [
    ...['--session', '--print-reply', '--dest=org.freedesktop.DBus', '/org/freedesktop/DBus'],
    ...['org.freedesktop.DBus.NameHasOwner', 'string:org.freedesktop.secrets'],
  ];
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const { stdout } = await promisify(execFile)('dbus-send', question, { env });
    if (stdout.includes('boolean true')) return;
    if (performance.now() > deadline) throw new Error('gnome-keyring did not appear on the bus');
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

function busConfig(folder: string): string {
  return `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=${folder}/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
`;
}
