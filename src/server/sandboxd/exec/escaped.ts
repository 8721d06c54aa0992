/** Without namespaces a process may leave its command's group; it still has the command's id in its environment, unless it cleared that. */
import { readdir, readFile } from 'node:fs/promises';
import { sendSignal } from '../isolation/processes.js';

/** The variable every process of a command has. */
export const COMMAND_VARIABLE = 'AILSD_COMMAND_ID';

/** Ends those that are there, and those that they started meanwhile. Linux only; elsewhere nobody is found. */
export async function killEscaped(commandId: string): Promise<void> {
  const mark = `${COMMAND_VARIABLE}=${commandId}`;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const found = await pidsOf(mark);
    if (found.length === 0) return;
    for (const pid of found) sendSignal(pid, 'SIGKILL');
  }
}

const ROUNDS_MAX = 16;

async function pidsOf(mark: string): Promise<readonly number[]> {
  const found: number[] = [];
  const names = await readdir('/proc').catch(() => []);
  for (const name of names) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    if (environment.split('\0').includes(mark)) found.push(pid);
  }
  return found;
}
