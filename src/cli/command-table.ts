/** The commands there are: enough of each to print a list, and where the rest of it is. Loaded one at a time. */
import type { Command } from './command.js';
import type { Context } from './context.js';

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly group: string;
  load(): Promise<(context: Context) => Command>;
}

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'config',
    summary: 'read and change settings',
    group: 'This program:',
    load: async () => (await import('./commands/config.js')).configCommand,
  },
  {
    name: 'doctor',
    summary: 'check that this machine has what ailsd needs',
    group: 'This program:',
    load: async () => (await import('./commands/doctor.js')).doctorCommand,
  },
  {
    name: 'completion',
    summary: 'print the completion script of a shell',
    group: 'This program:',
    load: async () => (await import('./commands/completion.js')).completionCommand,
  },
  {
    name: 'version',
    summary: 'print which version this is',
    group: 'This program:',
    load: async () => (await import('./commands/version.js')).versionCommand,
  },
  {
    name: 'help',
    summary: 'print help on a command or a topic',
    group: 'This program:',
    load: async () => (await import('./commands/help.js')).helpCommand,
  },
];
