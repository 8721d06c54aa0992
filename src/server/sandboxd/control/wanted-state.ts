/** `state.json`: whether a sandbox is to run. A daemon that comes back runs those that ran, and leaves alone those that were stopped. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error-code.js';
import { replaceFile } from './daemon-file.js';

export type WantedState = 'running' | 'stopped';

export async function writeWantedState(folder: string, state: WantedState): Promise<void> {
  await replaceFile(join(folder, 'state.json'), JSON.stringify({ state }));
}

/** One that says nothing was made to be run. */
export async function readWantedState(folder: string): Promise<WantedState> {
  try {
    const value: unknown = JSON.parse(await readFile(join(folder, 'state.json'), 'utf8'));
    const isStopped =
      typeof value === 'object' && value !== null && 'state' in value && value.state === 'stopped';
    return isStopped ? 'stopped' : 'running';
  } catch (error) {
    if (error instanceof SyntaxError || errorCode(error) === 'ENOENT') return 'running';
    throw error;
  }
}
