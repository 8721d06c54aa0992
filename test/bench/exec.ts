/** `true` over an open connection to a sandbox, beside a bare spawn of it: in one process and run, interleaved. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connectExec } from '../server/sandboxd/support/exec-client.js';
import { startSandbox } from './sandbox-process.js';

export interface ExecFigures {
  readonly spawnMs: number;
  /** Without isolation. */
  readonly plainMs: number;
  /** In namespaces. */
  readonly isolatedMs: number;
}

const ROUNDS = 150;

export async function execBench(): Promise<ExecFigures> {
  using plain = await startSandbox('none', 'process');
  using isolated = await startSandbox('namespaces', 'process');
  const clients = [];
  for (const { port, path, token } of [plain, isolated])
    clients.push(await connectExec(`ws://127.0.0.1:${port}${path}/v1/exec/ws`, token));
  const ways = [bareSpawn, ...clients.map((client) => () => runTrue(client))];
  const times = ways.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [at, way] of ways.entries()) {
      const begin = performance.now();
      await way();
      times[at]?.push(performance.now() - begin);
    }
  }
  for (const client of clients) client[Symbol.dispose]();
  const [spawnMs = 0, plainMs = 0, isolatedMs = 0] = times.map(median);
  return { spawnMs, plainMs, isolatedMs };
}

async function bareSpawn(): Promise<void> {
  const child = spawn('true', [], { stdio: ['pipe', 'pipe', 'pipe'], env: { PATH } });
  child.stdout.resume();
  child.stderr.resume();
  child.stdin.end();
  await once(child, 'close');
}

const PATH = '/usr/local/bin:/usr/bin:/bin';

async function runTrue(client: Awaited<ReturnType<typeof connectExec>>): Promise<void> {
  client.restart();
  client.send({ type: 'start', argv: ['true'] });
  client.send({ type: 'eof' });
  const { exit_code } = await client.frame('exit');
  if (exit_code !== 0) throw new Error(`true ended with ${exit_code}`);
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
