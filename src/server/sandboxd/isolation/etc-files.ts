/** The sandbox's /etc: a few files of its own and the few of the host that programs need. Nothing else of the host's is there. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SandboxPlace } from './launcher.js';

export const HOME_INSIDE = '/home/sandbox';
export const USER_INSIDE = 'sandbox';
export const HOST_INSIDE = 'sandbox';

/** Public by nature. `/etc/ssl` as a whole is not: it holds private keys. */
const SHARED = [
  'alternatives',
  'ca-certificates',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'localtime',
  'mime.types',
  'pki/ca-trust',
  'pki/tls/certs',
  'protocols',
  'services',
  'ssl/certs',
  'ssl/openssl.cnf',
  'terminfo',
];

/** Made by name: bubblewrap would make them for itself alone, and nothing in them could be read. */
const PARENTS = ['pki', 'pki/tls', 'ssl'];

/** Writes them into `folder`. */
export async function writeEtcFiles(
  folder: string,
  account: { readonly uid: number; readonly gid: number },
  environment: SandboxPlace['environment'],
): Promise<void> {
  const { uid, gid } = account;
  const files: Readonly<Record<string, string>> = {
    passwd: `root:x:0:0:root:/root:/usr/sbin/nologin\n${USER_INSIDE}:x:${uid}:${gid}::${HOME_INSIDE}:/bin/bash\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n`,
    group: `root:x:0:\n${USER_INSIDE}:x:${gid}:\nnogroup:x:65534:\n`,
    hostname: `${HOST_INSIDE}\n`,
    hosts: `127.0.0.1 localhost ${HOST_INSIDE}\n::1 localhost\n`,
    'nsswitch.conf':
      'passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n',
    'resolv.conf': environment === 'internal-only' ? '' : await resolvers(),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

/** As bubblewrap's arguments: what `writeEtcFiles` wrote, then what the host shares. */
export async function etcArguments(folder: string): Promise<readonly string[]> {
  const own = (await readdir(folder)).flatMap((name) => [
    '--ro-bind',
    join(folder, name),
    `/etc/${name}`,
  ]);
  const shared = SHARED.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]);
  const parents = PARENTS.flatMap((name) => ['--perms', '0755', '--dir', `/etc/${name}`]);
  return [...own, ...parents, ...shared];
}

async function resolvers(): Promise<string> {
  try {
    return await readFile('/etc/resolv.conf', 'utf8');
  } catch {
    return '';
  }
}
