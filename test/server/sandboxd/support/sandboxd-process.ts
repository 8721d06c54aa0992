/** The built daemon as a process of its own, so that what it holds can be weighed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../../src/base/clock.js';
import { newId } from '../../../../src/protocol/ids.js';
import { claimsOf, forge, random, specOf } from './sandboxd.js';

export interface SandboxdProcess extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  token(claims?: object): string;
  memoryBytes(): number;
  descriptors(): number;
  /** Everything it has logged. */
  log(): string;
  /** Asks it to end, and gives its exit code. */
  end(): Promise<number | null>;
}

export async function spawnSandboxd(): Promise<SandboxdProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'ailsd-sandboxd-process-'));
  const id = newId('sandbox', random);
  const key = randomBytes(32);
  const folder = join(dir, 'sandboxes', id);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'spec.json'), JSON.stringify(specOf(id, 64)));
  const access = { generation: 1, keys: [key.toString('base64url')], ended: [] };
  await writeFile(join(folder, 'access.json'), JSON.stringify(access));
  const program = join(process.cwd(), 'dist', 'server', 'ailsd-sandboxd.mjs');
  const child: ChildProcess = spawn(
    process.execPath,
    ['--max-semi-space-size=4', '--heap-growing-percent=30', program],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
    },
  );
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk;
  });
  child.stdin?.end(JSON.stringify({ dir, isolation: 'none' }));
  const [line] = await once(child.stdout ?? child, 'data');
  const { port } = JSON.parse(String(line));
  const end = async (): Promise<number | null> => {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit');
    return child.exitCode;
  };
  return {
    port,
    url: `ws://127.0.0.1:${port}/s/${id}/v1/shell/ws`,
    token: (claims = {}) => forge({ ...claimsOf(id, systemClock), ...claims }, key),
    memoryBytes: () => {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
    },
    descriptors: () => readdirSync(`/proc/${child.pid}/fd`).length,
    log: () => log,
    end,
    async [Symbol.asyncDispose]() {
      await end();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
