/** What /proc tells about processes that we started. Linux only. */
import { readFile } from 'node:fs/promises';
import { errorCode } from '../../../base/error-code.js';

export interface ProcessState {
  readonly session: number;
  /** Of its terminal; -1: it has none. */
  readonly foregroundGroup: number;
  readonly isZombie: boolean;
}

/** `undefined`: there is no such process. */
export async function processState(pid: number): Promise<ProcessState | undefined> {
  const stat = await readIfThere(`/proc/${pid}/stat`);
  // The name, in parentheses, may hold anything (proc(5)).
  const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [, , session, , foregroundGroup] = rest.map(Number);
  if (session === undefined || foregroundGroup === undefined) return undefined;
  return { session, foregroundGroup, isZombie: state === 'Z' };
}

export async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readIfThere(`/proc/${pid}/task/${pid}/children`);
  return text.trim().split(' ').map(Number).filter(isPid);
}

/** False: there is nobody. */
export function sendSignal(target: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
    throw error;
  }
}

function isPid(value: number): boolean {
  return Number.isInteger(value) && value > 0;
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(errorCode(error) ?? '')) return '';
    throw error;
  }
}
