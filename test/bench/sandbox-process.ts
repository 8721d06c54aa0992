/** A sandbox's daemon as it is shipped, in a process of its own, with access to it. */
import { spawn } from 'node:child_process';
import { createHmac, randomBytes, webcrypto } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '../../src/protocol/ids.js';
import { sandboxAccess } from '../support/sandbox-access.js';

export interface SandboxProcess extends Disposable {
  readonly pid: number;
  readonly port: number;
  readonly workspace: string;
  readonly token: string;
  /** The path under which it is served. */
  readonly path: string;
  /** For `ailsd`; another port is that of something in between. */
  env(port?: number): Record<string, string>;
}

const DAEMON = join(process.cwd(), 'dist', 'server', 'ailsd-sandboxd.mjs');
const THREAD = 'thr_bench';

export async function startSandbox(
  isolation: 'none' | 'namespaces' = 'none',
  scope = 'fs:rw shell',
): Promise<SandboxProcess> {
  const dir = mkdtempSync(join(tmpdir(), 'ailsd-bench-'));
  const id = newId('sandbox', (bytes) => webcrypto.getRandomValues(bytes));
  const folder = join(dir, 'sandboxes', id);
  mkdirSync(folder, { recursive: true });
  const key = randomBytes(32);
  const spec = {
    id,
    thread_id: THREAD,
    environment: 'default-public',
    env: {},
    limits: { memory_bytes: 0, pids: 0, disk_bytes: 0, shells: 64, commands: 16 },
    labels: {},
  };
  const access = { generation: 1, keys: [key.toString('base64url')], ended: [] };
  writeFileSync(join(folder, 'spec.json'), JSON.stringify(spec));
  writeFileSync(join(folder, 'access.json'), JSON.stringify(access), { mode: 0o600 });
  const daemon = spawn(process.execPath, [DAEMON], { stdio: ['pipe', 'pipe', 'inherit'] });
  daemon.stdin.end(`${JSON.stringify({ dir, isolation, log_level: 'error' })}\n`);
  const line = await new Promise<string>((resolve, reject) => {
    daemon.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    daemon.once('exit', (code) => reject(new Error(`the daemon ended with ${code}`)));
  });
  const { port } = JSON.parse(line);
  const token = sign({ aud: id, thread_id: THREAD, room: THREAD, scope }, key);
  const path = `/s/${id}`;
  return {
    pid: daemon.pid ?? 0,
    port,
    token,
    path,
    workspace: join(folder, 'workspace'),
    env: (through = port) => ({
      AILSD_SANDBOX: sandboxAccess({ port: through, path, token, sandboxId: id, thread: THREAD }),
    }),
    [Symbol.dispose]: () => {
      daemon.kill();
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function sign(claims: object, key: Uint8Array): string {
  const iat = Math.floor(Date.now() / 1000);
  const jti = newId('token', (bytes) => webcrypto.getRandomValues(bytes));
  const all = { sub: 'usr_1', iat, exp: iat + 900, jti, ...claims };
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(all)}`;
  return `${body}.${createHmac('sha256', key).update(body).digest('base64url')}`;
}
