/** A terminal through `ailsd attach`, beside `ssh -t` and a bare WebSocket bridge: a key's echo, bulk output, and the time after a cut. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import WebSocket from 'ws';
import { cuttingProxy } from '../support/cutting-proxy.js';
import { type RawPty, rawPty } from '../support/raw-pty.js';
import { type SandboxProcess, startSandbox } from './sandbox-process.js';
import { startSshServer } from './ssh-server.js';

export interface TerminalFigures {
  /** Of a key's echo, in milliseconds: the median. */
  readonly echoMs: Readonly<Record<Peer, number>>;
  /** In MiB a second. */
  readonly catRate: Readonly<Record<Peer, number>>;
  readonly seqRate: Readonly<Record<Peer, number>>;
  readonly reconnectMs: number;
  readonly bareReconnectMs: number;
}

type Peer = 'ailsd' | 'ssh' | 'bare';
type Start = (command: string) => RawPty;

const WARM_ECHOES = 1500;
const ECHOES = 1000;
const ROUNDS = 5;
const RECONNECTS = 60;
const CAT_BYTES = 100 * 1000 * 1000;
const MIB = 1024 * 1024;

export async function terminalBench(): Promise<TerminalFigures | undefined> {
  using ssh = await startSshServer();
  if (ssh === undefined) return undefined;
  using sandbox = await startSandbox();
  const bin = join(process.cwd(), 'bin', 'ailsd.js');
  const peers: Record<Peer, Start> = {
    ailsd: (command) =>
      rawPty(process.execPath, [bin, 'attach', '-q', '--escape-char', 'none', '--cmd', command], {
        env: sandbox.env(),
        keep: false,
      }),
    ssh: (command) => rawPty('ssh', [...ssh.args, command], { env: ssh.env, keep: false }),
    bare: (command) => bareBridge(command),
  };
  const echoMs = await echoTimes(peers);
  const file = join(sandbox.workspace, 'bulk.txt');
  writeFileSync(file, bulkText(CAT_BYTES));
  const catRate = await rates(peers, `stty -onlcr; cat ${file}`, CAT_BYTES);
  const seqRate = await rates(peers, 'stty -onlcr; seq 1 5000000', 38_888_896);
  return { echoMs, catRate, seqRate, ...(await reconnects(sandbox)) };
}

function bareBridge(command: string): RawPty {
  const program = join(process.cwd(), 'test', 'bench', 'bare-bridge.mjs');
  const server = spawn(process.execPath, [program, 'server', '-', '/bin/sh', '-c', command], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // The client waits for the server's port in its own shell, so that both start as one.
  const script = `read port < "$0"; exec "$1" "$2" client "$port"`;
  const portFile = join(tmpdir(), `ailsd-bare-${server.pid}`);
  server.stdout.once('data', (port: Buffer) => writeFileSync(portFile, port));
  const wait = `while [ ! -s "$0" ]; do sleep 0.01; done; ${script}`;
  const pty = rawPty('/bin/sh', ['-c', wait, portFile, process.execPath, program], { keep: false });
  void pty.ended().then(() => {
    server.kill();
    rmSync(portFile, { force: true });
  });
  return pty;
}

/** In turns, so that a slow moment of the machine is everybody's. */
async function echoTimes(peers: Record<Peer, Start>): Promise<Record<Peer, number>> {
  const names = ['ailsd', 'ssh', 'bare'] as const;
  const open = new Map<Peer, Echoing>();
  for (const name of names) {
    const echoing = new Echoing(peers[name]('stty raw -echo; printf READY; exec cat'));
    await echoing.ready();
    open.set(name, echoing);
  }
  // What is measured is what a person meets who works in it, not the first keys after its start.
  for (const echoing of open.values()) {
    for (let warm = 0; warm < WARM_ECHOES; warm += 1) await echoing.once();
  }
  const times: Record<Peer, number[]> = { ailsd: [], ssh: [], bare: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of names) {
      const echoing = open.get(name);
      if (echoing === undefined) continue;
      for (let warm = 0; warm < 20; warm += 1) await echoing.once();
      for (let echo = 0; echo < ECHOES / ROUNDS; echo += 1) times[name].push(await echoing.once());
    }
  }
  for (const echoing of open.values()) echoing.end();
  return { ailsd: median(times.ailsd), ssh: median(times.ssh), bare: median(times.bare) };
}

class Echoing {
  readonly #pty: RawPty;
  #seen = '';
  #wake: (() => void) | undefined;
  #key = 0;

  constructor(pty: RawPty) {
    this.#pty = pty;
    pty.onData((chunk) => {
      this.#seen = (this.#seen + chunk.toString('latin1')).slice(-64);
      this.#wake?.();
    });
  }

  ready(): Promise<void> {
    return this.#until(() => this.#seen.includes('READY'));
  }

  async once(): Promise<number> {
    this.#key = (this.#key + 1) % 26;
    const key = String.fromCharCode(97 + this.#key);
    this.#seen = '';
    const begin = performance.now();
    this.#pty.write(key);
    await this.#until(() => this.#seen.includes(key));
    return performance.now() - begin;
  }

  end(): void {
    this.#pty[Symbol.dispose]();
  }

  async #until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

async function rates(
  peers: Record<Peer, Start>,
  command: string,
  bytes: number,
): Promise<Record<Peer, number>> {
  const found: Record<Peer, number[]> = { ailsd: [], ssh: [], bare: [] };
  for (let round = 0; round < 3; round += 1) {
    for (const name of ['ailsd', 'ssh', 'bare'] as const) {
      found[name].push(await rate(peers[name](`printf READY; read go; ${command}`), bytes));
    }
  }
  return { ailsd: median(found.ailsd), ssh: median(found.ssh), bare: median(found.bare) };
}

/** From the first byte that counts to the last; the bytes are counted too. */
async function rate(pty: RawPty, bytes: number): Promise<number> {
  let begin = 0;
  let end = 0;
  let seen = 0;
  let isReady = false;
  const done = new Promise<void>((resolve) => {
    pty.onData((chunk) => {
      if (!isReady) {
        isReady = chunk.includes('READY');
        if (isReady) {
          pty.write('\r');
          begin = performance.now();
        }
        return;
      }
      seen += chunk.length;
      end = performance.now();
      if (seen >= bytes) resolve();
    });
  });
  await Promise.race([done, pty.ended()]);
  pty[Symbol.dispose]();
  if (seen < bytes) throw new Error(`only ${seen} of ${bytes} bytes came`);
  return bytes / MIB / ((end - begin) / 1000);
}

/** From the line being back to the missing bytes on the screen, beside nothing but an upgrade, an auth and an answer on the same way. */
async function reconnects(
  sandbox: SandboxProcess,
): Promise<Pick<TerminalFigures, 'reconnectMs' | 'bareReconnectMs'>> {
  await using proxy = await cuttingProxy(sandbox.port);
  const bin = join(process.cwd(), 'bin', 'ailsd.js');
  const command = 'while :; do printf x; sleep 0.005; done';
  const program = rawPty(process.execPath, [bin, 'attach', '-q', '--cmd', command], {
    env: sandbox.env(proxy.port),
    keep: false,
  });
  let next: (() => void) | undefined;
  let acceptedAt: number | undefined;
  program.onData(() => next?.());
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < RECONNECTS; round += 1) {
    await new Promise<void>((resolve) => {
      next = resolve;
    });
    next = undefined;
    acceptedAt = undefined;
    proxy.onAccept = () => {
      acceptedAt ??= performance.now();
    };
    proxy.cut();
    await new Promise<void>((resolve) => {
      next = () => {
        if (acceptedAt !== undefined) resolve();
      };
    });
    ours.push(performance.now() - (acceptedAt ?? 0));
    proxy.onAccept = () => undefined;
    bare.push(await bareUpgrade(sandbox, proxy.port));
  }
  program[Symbol.dispose]();
  return { reconnectMs: median(ours), bareReconnectMs: median(bare) };
}

function bareUpgrade({ path, token }: SandboxProcess, port: number): Promise<number> {
  const begin = performance.now();
  const ws = new WebSocket(`ws://127.0.0.1:${port}${path}/v1/shell/ws`, ['ailsd.v1.binary'], {
    perMessageDeflate: false,
  });
  return new Promise((resolve, reject) => {
    ws.on('open', () => ws.send(JSON.stringify({ type: 'auth', token })));
    ws.on('message', () => {
      resolve(performance.now() - begin);
      ws.terminate();
    });
    ws.on('error', reject);
  });
}

function bulkText(bytes: number): Buffer {
  const line = `${createHash('sha512').update('bulk').digest('hex').slice(0, 79)}\n`;
  return Buffer.alloc(bytes, line);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
