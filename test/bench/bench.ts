/** `npm run bench`: every figure beside its floor or peer, in one run, as a table and as JSON; fails where a budget is missed. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import budgets from './budgets.json' with { type: 'json' };
import { controlBench } from './control.js';
import { execBench } from './exec.js';
import { frameCodecBench } from './frame-codec.js';
import { medianTimes } from './start-up.js';
import { storedLogin } from './stored-login.js';
import { type TerminalFigures, terminalBench } from './terminal.js';
import { whoamiServer } from './whoami-server.js';

interface Figure {
  readonly name: keyof typeof budgets;
  readonly value: number;
  /** What it was measured against, in the same run. */
  readonly beside: string;
}

const RUNS = 20;
const BIN = join(process.cwd(), 'bin', 'ailsd.js');

async function figures(): Promise<Figure[]> {
  await using server = await whoamiServer();
  using login = storedLogin(server.url);
  const programs = {
    node: ['-e', '0'],
    version: [BIN, '--version'],
    help: [BIN, '--help'],
    token: [BIN, 'token'],
    whoami: [BIN, 'whoami', '--json'],
    session: [BIN, 'session', 'get', 'thr_bench', '--json'],
  };
  const times = medianTimes(programs, RUNS, login.env);
  const codec = await frameCodecBench();
  const control = await controlBench();
  const exec = await execBench();
  const terminal = await terminalBench();
  return [
    startUp('start --version', times['version'], times['node']),
    startUp('start --help', times['help'], times['node']),
    startUp('start token', times['token'], times['node']),
    startUp('start whoami', times['whoami'], times['node']),
    startUp('start session', times['session'], times['node']),
    beside('control get', control.get.perSecond, control.bareRead.perSecond, 'requests a second'),
    beside('control get p99', control.get.p99Ms, control.bareRead.p99Ms, 'ms'),
    beside('control ensure', control.ensure.perSecond, control.bareWrite.perSecond, 'a second'),
    beside('exec', exec.plainMs, exec.spawnMs, 'ms'),
    {
      name: 'exec isolated',
      value: exec.isolatedMs - exec.spawnMs,
      beside: `${exec.isolatedMs.toFixed(1)} ms, bare spawn ${exec.spawnMs.toFixed(1)} ms`,
    },
    ...(terminal === undefined ? [] : terminalFigures(terminal)),
    {
      name: 'frames encode',
      value: codec.encodeGBps,
      beside: `JSON text ${codec.jsonEncodeMBps.toFixed(0)} MB/s`,
    },
    {
      name: 'frames decode',
      value: codec.decodeGBps,
      beside: `JSON text ${codec.jsonDecodeMBps.toFixed(0)} MB/s`,
    },
  ];
}

function startUp(name: keyof typeof budgets, ours = Number.NaN, bare = Number.NaN): Figure {
  return {
    name,
    value: ours / bare,
    beside: `${ours.toFixed(1)} ms, bare node ${bare.toFixed(1)} ms`,
  };
}

function beside(name: keyof typeof budgets, ours: number, bare: number, unit: string): Figure {
  return {
    name,
    value: ours / bare,
    beside: `${ours.toFixed(1)}, bare ${bare.toFixed(1)} ${unit}`,
  };
}

/** As a person at a terminal meets it, beside `ssh -t` and the barest bridge that Node can be. */
function terminalFigures(found: TerminalFigures): Figure[] {
  const { echoMs, catRate, seqRate, reconnectMs, bareReconnectMs } = found;
  return [
    beside('attach echo', echoMs.ailsd, echoMs.ssh, 'ms (ssh)'),
    beside('attach echo, bare', echoMs.ailsd, echoMs.bare, 'ms (bridge)'),
    beside('attach cat', catRate.ailsd, catRate.ssh, 'MiB/s (ssh)'),
    beside('attach seq', seqRate.ailsd, seqRate.ssh, 'MiB/s (ssh)'),
    beside('attach reconnect', reconnectMs, bareReconnectMs, 'ms (upgrade and auth)'),
  ];
}

function judge({ name, value, beside }: Figure) {
  const budget: { unit: string; most?: number; least?: number } = budgets[name];
  const kept = value <= (budget.most ?? Number.POSITIVE_INFINITY) && value >= (budget.least ?? 0);
  const goal = budget.most === undefined ? `≥ ${budget.least}` : `≤ ${budget.most}`;
  return { name, value: Number(value.toFixed(3)), unit: budget.unit, goal, kept, beside };
}

const rows = (await figures()).map(judge);
mkdirSync('.test-results', { recursive: true });
writeFileSync('.test-results/bench.json', `${JSON.stringify(rows, null, 2)}\n`);
for (const { name, value, unit, goal, kept, beside } of rows) {
  console.log(
    `${kept ? 'kept  ' : 'MISSED'}  ${name.padEnd(16)} ${String(value).padStart(8)} ${unit.padEnd(12)} goal ${goal.padEnd(7)} (${beside})`,
  );
}
process.exitCode = rows.every((row) => row.kept) ? 0 : 1;
