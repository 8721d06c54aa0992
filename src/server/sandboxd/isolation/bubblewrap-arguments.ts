/** The sandbox's world as arguments of bubblewrap: which namespaces, which folders, and what the process that holds them open does. */
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';
import type { Account } from './account.js';
import { etcArguments, HOME_INSIDE, HOST_INSIDE } from './etc-files.js';
import type { SandboxPlace } from './launcher.js';
import type { Programs } from './programs.js';

export const WORKSPACE_INSIDE = '/workspace';
/** What the holder says when the sandbox can be entered. */
export const READY = 'ready';

const SHARED_MEMORY_BYTES = 64 * 1024 * 1024;
/** On a merged host these are links into /usr; elsewhere folders of their own. */
const SYSTEM_FOLDERS = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

/** For `--args`: so that no path of the host is in a command line that can be read inside. */
export async function worldArguments(
  place: SandboxPlace,
  account: Account,
): Promise<readonly string[]> {
  return [
    ...namespaceArguments(place, account),
    '--die-with-parent',
    '--clearenv',
    ...['--hostname', HOST_INSIDE],
    ...['--ro-bind', '/usr', '/usr'],
    ...(await systemArguments()),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...['--perms', '0755', '--dir', '/etc', ...(await etcArguments(join(place.folder, 'etc')))],
    ...['--perms', '0755', '--dir', '/run', '--perms', '0755', '--dir', '/var'],
    ...['--perms', '0755', '--dir', '/home', '--bind', join(place.folder, 'home'), HOME_INSIDE],
    ...['--bind', join(place.folder, 'tmp'), '/tmp', '--symlink', '/tmp', '/var/tmp'],
    ...['--bind', join(place.folder, 'workspace'), WORKSPACE_INSIDE],
    ...['--remount-ro', '/dev', '--size', `${SHARED_MEMORY_BYTES}`, '--perms', '1777'],
    ...['--tmpfs', '/dev/shm', '--remount-ro', '/', '--chdir', '/'],
  ];
}

/** The first process inside: it says that it is there, and then only waits. Its end is the sandbox's. */
export function holderCommand(programs: Programs, account: Account): readonly string[] {
  const wait = [programs.sh, '-c', `echo ${READY}; exec "$0" infinity`, programs.sleep];
  switch (account.kind) {
    case 'own':
      return [...ownAccountPrefix(programs, account), ...wait];
    case 'mapped': {
      const { uid, gid } = account;
      const map = [`--map-user=${uid}`, `--map-group=${gid}`];
      return [programs.unshare, '--user', ...map, '--', ...wait];
    }
  }
}

export function ownAccountPrefix(
  programs: Programs,
  { uid, gid }: { readonly uid: number; readonly gid: number },
): readonly string[] {
  const change = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  const never = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'];
  return [programs.setpriv, ...change, ...never, '--'];
}

function namespaceArguments(place: SandboxPlace, account: Account): readonly string[] {
  const common = ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup'];
  const net = place.environment === 'internal-only' ? ['--unshare-net'] : [];
  switch (account.kind) {
    case 'own':
      // What the holder needs to change its account and give up everything; nothing is left after that.
      return [
        ...common,
        ...net,
        ...['--cap-drop', 'ALL', '--cap-add', 'CAP_SETUID'],
        ...['--cap-add', 'CAP_SETGID', '--cap-add', 'CAP_SETPCAP'],
      ];
    case 'mapped':
      // Root in the outer user namespace, so that bubblewrap makes one only and whoever enters may then enter the holder's inner
      // one; mapping that root onward takes CAP_SETFCAP (Linux 5.12).
      return [
        ...['--unshare-user', '--uid', '0', '--gid', '0'],
        ...common,
        ...net,
        ...['--cap-drop', 'ALL', '--cap-add', 'CAP_SETFCAP'],
      ];
  }
}

async function systemArguments(): Promise<readonly string[]> {
  const found = SYSTEM_FOLDERS.map(async (name) => {
    const path = `/${name}`;
    try {
      const entry = await lstat(path);
      if (entry.isSymbolicLink()) return ['--symlink', await readlink(path), path];
      return ['--ro-bind', path, path];
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return [];
      throw error;
    }
  });
  return (await Promise.all(found)).flat();
}
