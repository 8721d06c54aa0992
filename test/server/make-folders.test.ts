import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeFolders as makeForClient } from '../../src/client/credentials/make-folders.js';
import { makeFolders as makeForServer } from '../../src/server/store/make-folders.js';

it.each([
  ['the client', async (path: string) => makeForClient(path)],
  ['the server', makeForServer],
])('%s makes folders for itself alone, and ends where none can be made', async (_, make) => {
  const folder = mkdtempSync(join(tmpdir(), 'ailsd-folders-'));
  try {
    const deep = join(folder, 'a', 'b');
    await make(deep);
    await make(deep);
    expect(statSync(deep).mode & 0o777).toBe(0o700);
    // Node's recursive mkdir never comes back from here.
    if (process.platform === 'linux')
      await expect(make('/proc/x/y')).rejects.toMatchObject({ code: 'ENOENT' });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
