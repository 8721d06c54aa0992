/** What the kernel tells about processes: who is in a session, and which group is in the foreground of its terminal. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** The group that a key such as Ctrl-C would reach; `undefined` when the session is gone. */
export function foregroundGroup(leader: number): number | undefined {
  const group = fieldsOf(leader)?.[FOREGROUND];
  return group !== undefined && group > 1 ? group : undefined;
}

/** Every process of the leader's session, the leader included; those that started a session of their own have left it. */
export function sessionMembers(leader: number): readonly number[] {
  const members: number[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (Number.isInteger(pid) && fieldsOf(pid)?.[SESSION] === leader) members.push(pid);
  }
  return members;
}

/** Someone who is gone already is no failure. */
export function sendSignal(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch {
    // Gone, or not ours any more.
  }
}

/** Of `/proc/PID/stat`, counted after the name, which may hold anything (proc(5)). */
const SESSION = 3;
const FOREGROUND = 5;

function fieldsOf(pid: number): readonly number[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
  } catch {
    return undefined;
  }
}
