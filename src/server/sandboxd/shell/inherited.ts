/**
 * Keeps terminals from leaking into each other's programs. The PTY package leaves its descriptors open across `exec`: without this, a
 * program in one shell could read and type in another. So a program is started by a shell that first closes them.
 */
import { existsSync } from 'node:fs';

export interface Program {
  readonly file: string;
  readonly args: readonly string[];
}

/** `open`: every descriptor of a terminal that this process holds. */
export function withoutInherited(program: Program, open: Iterable<number>): Program {
  const closes = [...open].map((fd) => `${fd}>&-`);
  if (closes.length === 0) return program;
  closer ??= CLOSERS.find(({ file }) => existsSync(file));
  if (closer === undefined)
    throw new Error('neither bash nor busybox is here to close what must not be inherited');
  const script = `exec ${closes.join(' ')}; exec "$@"`;
  return {
    file: closer.file,
    args: [...closer.args, script, 'ailsd', program.file, ...program.args],
  };
}

/** Shells that can close a descriptor above 9; `-p` keeps bash from reading a file that the environment names. */
const CLOSERS: readonly Program[] = [
  { file: '/bin/bash', args: ['-p', '-c'] },
  { file: '/usr/bin/bash', args: ['-p', '-c'] },
  { file: '/bin/busybox', args: ['sh', '-c'] },
];

let closer: Program | undefined;
