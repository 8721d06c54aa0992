/** Where the host keeps the programs that isolation is made of. They are found by place, never by a PATH somebody gave us. */
import { access, constants } from 'node:fs/promises';
import { AilsdError } from '../../../protocol/errors.js';

export interface Programs {
  readonly bwrap: string;
  readonly nsenter: string;
  readonly unshare: string;
  readonly setpriv: string;
  readonly setsid: string;
  readonly prlimit: string;
  readonly mount: string;
  readonly env: string;
  readonly sleep: string;
  readonly chown: string;
  readonly sh: string;
  /** A shell that can close descriptors above 9, and its options. */
  readonly closer: readonly [string, ...string[]];
}

/** The sandbox sees these folders too, so a program found here is there inside under the same name. */
const PLACES = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'] as const;

export async function findPrograms(): Promise<Programs> {
  return {
    bwrap: await find('bwrap', 'bubblewrap'),
    nsenter: await find('nsenter', 'util-linux'),
    unshare: await find('unshare', 'util-linux'),
    setpriv: await find('setpriv', 'util-linux'),
    setsid: await find('setsid', 'util-linux'),
    prlimit: await find('prlimit', 'util-linux'),
    mount: await find('mount', 'util-linux'),
    env: await find('env', 'coreutils'),
    sleep: await find('sleep', 'coreutils'),
    chown: await find('chown', 'coreutils'),
    sh: await find('sh', 'a shell'),
    closer: await findCloser(),
  };
}

/** Bash reads no file then: neither one that an environment names nor, with a socket for input, its user's own. */
async function findCloser(): Promise<readonly [string, ...string[]]> {
  try {
    return [await find('bash', 'bash'), '--norc', '--noprofile', '-p'];
  } catch {
    return [await find('busybox', 'bash or busybox'), 'sh'];
  }
}

async function find(name: string, packageName: string): Promise<string> {
  for (const place of PLACES) {
    const path = `${place}/${name}`;
    if (await isExecutable(path)) return path;
  }
  throw new AilsdError('PROVIDER_UNAVAILABLE', `no ${name} on this host (${packageName})`, {
    hint: `install ${packageName}`,
  });
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
