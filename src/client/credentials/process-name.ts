/** A name for this process that others can use to ask whether it still lives, also after its number was given to another. */
import { readFileSync, readlinkSync } from 'node:fs';
import { uniqueName } from './private-file.js';

/** Number, start, the world in which the number means something, and what makes it unique; safe as a file name. */
export function ownName(): string {
  return [process.pid, startOf('self') ?? 0, world(), uniqueName()].join('_');
}

/** `undefined` where it can't be known from here. */
export function isAlive(name: string): boolean | undefined {
  const [pid = '', start, itsWorld] = name.split('_');
  if (!/^[1-9]\d*$/.test(pid) || itsWorld !== world() || itsWorld === '') return undefined;
  const found = startOf(pid);
  // It has ended, or its number belongs to another by now.
  return found !== undefined && String(found) === start;
}

/** The boot and the process namespace: where both are the same, a process number means the same. Empty off Linux. */
function world(): string {
  known ??= readWorld();
  return known;
}

let known: string | undefined;

function readWorld(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
    return namespace === undefined || startOf('self') === undefined ? '' : `${boot}-${namespace}`;
  } catch {
    return '';
  }
}

/** In clock ticks since boot: proc(5), field 22 of stat. `undefined` where there is no such process, or only its remains. */
function startOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name in field 2 may hold anything, brackets and spaces included; nothing after it does.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? undefined : Number(fields[18]);
  } catch {
    return undefined;
  }
}
