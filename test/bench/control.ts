/** The broker's `get` and `ensure` of an existing session beside a bare Hono route with the same token check, by wrk, in turns. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ControlFigures {
  /** Requests a second, and the 99th percentile in ms. */
  readonly get: Load;
  readonly bareRead: Load;
  readonly ensure: Load;
  readonly bareWrite: Load;
}

export interface Load {
  readonly perSecond: number;
  readonly p99Ms: number;
}

const ROUNDS = 3;
const SECONDS = 3;

export async function controlBench(): Promise<ControlFigures> {
  const child = spawn(process.execPath, ['src/tooling/run.mjs', 'test/bench/control-server.ts'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.on('close', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'ailsd-bench-'));
  try {
    const line = await new Promise<string>((resolve) =>
      child.stdout.once('data', (data: Buffer) => resolve(data.toString())),
    );
    const { url, bareUrl, token, sessionId } = JSON.parse(line);
    const script = join(folder, 'post.lua');
    const body = JSON.stringify({ thread_id: 'thr_bench', mode: 'ensure' });
    writeFileSync(script, `wrk.method = "POST"\nwrk.body = '${body}'\n`);
    const loads = {
      bareRead: () => load(`${bareUrl}/read/${sessionId}`, token),
      get: () => load(`${url}/v1/sandbox/sessions/${sessionId}`, token),
      bareWrite: () => load(`${bareUrl}/write`, token, script),
      ensure: () => load(`${url}/v1/sandbox/sessions`, token, script),
    };
    // What is compiled at the first use has been; then in turns, so that a busy moment meets all of them.
    for (const one of Object.values(loads)) one();
    const rounds = Array.from({ length: ROUNDS }, () => ({
      bareRead: loads.bareRead(),
      get: loads.get(),
      bareWrite: loads.bareWrite(),
      ensure: loads.ensure(),
    }));
    const median = (name: keyof typeof loads): Load => {
      const sorted = rounds.map((round) => round[name]).sort((a, b) => a.perSecond - b.perSecond);
      return sorted[Math.floor(ROUNDS / 2)] ?? { perSecond: Number.NaN, p99Ms: Number.NaN };
    };
    return {
      get: median('get'),
      bareRead: median('bareRead'),
      ensure: median('ensure'),
      bareWrite: median('bareWrite'),
    };
  } finally {
    child.stdin.end();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

function load(url: string, token: string, script?: string): Load {
  const text = execFileSync(
    'wrk',
    [
      ...['-t1', '-c16', `-d${SECONDS}s`, '--latency', '-H', `Authorization: Bearer ${token}`],
      ...(script === undefined ? [] : ['-s', script]),
      url,
    ],
    { encoding: 'utf8' },
  );
  if (/Non-2xx/.test(text)) throw new Error(`${url}: ${text}`);
  const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1] ?? Number.NaN);
  const [, amount = '', unit = ''] = /99%\s+([\d.]+)(us|ms|s)\b/.exec(text) ?? [];
  const factor = { us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN;
  return { perSecond, p99Ms: Number(amount) * factor };
}
