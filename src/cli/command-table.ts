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
    name: 'login',
    summary: 'log in to the server',
    group: 'Login:',
    load: async () => (await import('./commands/login.js')).loginCommand,
  },
  {
    name: 'logout',
    summary: 'end the login and forget it',
    group: 'Login:',
    load: async () => (await import('./commands/logout.js')).logoutCommand,
  },
  {
    name: 'whoami',
    summary: 'print who you are to the server, and whether the login works',
    group: 'Login:',
    load: async () => (await import('./commands/whoami.js')).whoamiCommand,
  },
  {
    name: 'token',
    summary: 'print an access token for scripts, renewed if need be',
    group: 'Login:',
    load: async () => (await import('./commands/token.js')).tokenCommand,
  },
  {
    name: 'server',
    summary: 'run a server and look after its users, clients and keys',
    group: 'The other side:',
    load: async () => (await import('./commands/server.js')).serverCommand,
  },
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
