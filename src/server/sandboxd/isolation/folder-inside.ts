/** Whether a folder is there as the sandbox sees it: links are followed from its root, never from the host's. Only asks, opens nothing. */
import { lstat, readlink } from 'node:fs/promises';
import { join, posix } from 'node:path';

/** As many as the kernel follows. */
const MAX_LINKS = 40;

/** `root`: the host's path of the sandbox's root. */
export async function isFolderInside(root: string, path: string): Promise<boolean> {
  const left = path.split('/').filter((name) => name !== '' && name !== '.');
  const at: string[] = [];
  let links = 0;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    if (name === '..') {
      at.pop();
      continue;
    }
    const host = join(root, ...at, name);
    const entry = await lstatIfThere(host);
    if (entry === undefined) return false;
    if (!entry.isSymbolicLink()) {
      if (!entry.isDirectory()) return false;
      at.push(name);
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) return false;
    const target = await readlink(host);
    if (posix.isAbsolute(target)) at.length = 0;
    left.unshift(...target.split('/').filter((one) => one !== '' && one !== '.'));
  }
  return true;
}

async function lstatIfThere(path: string) {
  try {
    return await lstat(path);
  } catch {
    return undefined;
  }
}
