/** `daemon.json`: what the daemon of a folder is, and where it was reached, so that the next one is reached there again. */
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';
import { parse } from '../../../protocol/parse.js';
import { type DaemonHealth, daemonHealth } from '../../../protocol/shapes/sandboxd.js';

export async function writeDaemonFile(dir: string, health: DaemonHealth): Promise<void> {
  await replaceFile(join(dir, 'daemon.json'), JSON.stringify(health));
}

/** 0: any port will do. */
export async function rememberedPort(dir: string): Promise<number> {
  try {
    const value: unknown = JSON.parse(await readFile(join(dir, 'daemon.json'), 'utf8'));
    const parsed = parse(daemonHealth, value, 'CONFIG_INVALID', 'daemon.json: ');
    return parsed.ok ? parsed.value.port : 0;
  } catch (error) {
    if (error instanceof SyntaxError || errorCode(error) === 'ENOENT') return 0;
    throw error;
  }
}

/** The old one or the new one, whole, whatever happens. */
export async function replaceFile(path: string, text: string): Promise<void> {
  writes += 1;
  const made = `${path}.${process.pid}-${writes}.tmp`;
  try {
    await using file = await open(made, 'w', 0o600);
    await file.writeFile(text);
    await file.sync();
    await rename(made, path);
  } catch (error) {
    await rm(made, { force: true });
    throw error;
  }
}

/** Several may be under way for one path. */
let writes = 0;
