/** An sshd of our own on a private port, with keys that live as long as it does: the peer that terminals are measured against. */
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

export interface SshServer extends Disposable {
  /** What to put between `ssh` and the command. */
  readonly args: readonly string[];
  /** An empty home: a person's shell start files would count. */
  readonly env: Record<string, string>;
}

const SSHD = '/usr/sbin/sshd';

/** `undefined` where there is no sshd. */
export async function startSshServer(): Promise<SshServer | undefined> {
  if (!existsSync(SSHD)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'ailsd-sshd-'));
  const path = (name: string): string => join(folder, name);
  for (const name of ['host', 'user']) {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path(name)]);
  }
  writeFileSync(path('authorized'), readFileSync(path('user.pub')));
  chmodSync(path('authorized'), 0o600);
  const port = await freePort();
  // Where sshd wants to be able to lock itself in, and most systems make at boot.
  if (userInfo().uid === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const options = [
    `HostKey=${path('host')}`,
    `AuthorizedKeysFile=${path('authorized')}`,
    'PasswordAuthentication=no',
    'UsePAM=no',
    'StrictModes=no',
    'PermitRootLogin=yes',
    'PrintMotd=no',
    'PrintLastLog=no',
    `PidFile=${path('pid')}`,
    'ListenAddress=127.0.0.1',
  ];
  const sshd = spawn(
    SSHD,
    ['-D', '-e', '-f', '/dev/null', '-p', String(port), ...options.flatMap((one) => ['-o', one])],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  await new Promise<void>((resolve, reject) => {
    let said = '';
    sshd.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('listening')) resolve();
    });
    sshd.once('exit', () => reject(new Error(`sshd ended: ${said}`)));
  });
  const args = [
    '-F/dev/null',
    '-tt',
    '-q',
    `-p${port}`,
    `-i${path('user')}`,
    '-oStrictHostKeyChecking=no',
    '-oUserKnownHostsFile=/dev/null',
    `${userInfo().username}@127.0.0.1`,
  ];
  return {
    args,
    env: { HOME: folder },
    [Symbol.dispose]: () => {
      sshd.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
