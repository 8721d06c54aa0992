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
    name: 'attach',
    summary: 'open a terminal in the sandbox; it survives cuts, sleep and changes of network',
    group: 'Work in a sandbox:',
    load: async () => (await import('./commands/attach.js')).attachCommand,
  },
  {
    name: 'exec',
    summary: 'run one command in the sandbox, and end with its exit code',
    group: 'Work in a sandbox:',
    load: async () => (await import('./commands/exec.js')).execCommand,
  },
  {
    name: 'run',
    summary: 'for CI: get a sandbox, run one command in it, and let go of it',
    group: 'Work in a sandbox:',
    load: async () => (await import('./commands/run.js')).runCommand,
  },
  {
    name: 'job',
    summary: 'commands that were started with `ailsd exec`: list, wait for, read and end them',
    group: 'Work in a sandbox:',
    load: async () => (await import('./commands/job.js')).jobCommand,
  },
  {
    name: 'code',
    summary: 'run code in the sandbox, counted and recorded as an agent’s is',
    group: 'Work in a sandbox:',
    load: async () => (await import('./commands/code.js')).codeCommand,
  },
  {
    name: 'cp',
    summary: 'copy files and folders into a sandbox or out of it',
    group: 'Work in a sandbox:',
    load: async () => (await import('./commands/cp.js')).cpCommand,
  },
  {
    name: 'files',
    summary: 'the files of a sandbox: list, print, write, delete and look at them',
    group: 'Work in a sandbox:',
    load: async () => (await import('./commands/files.js')).filesCommand,
  },
  {
    name: 'dev',
    summary: 'try everything on this machine: a server, a sandbox, and a shell in it',
    group: 'Work in a sandbox:',
    load: async () => (await import('./commands/dev.js')).devCommand,
  },
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
    name: 'session',
    summary: 'a thread’s session: get, make, look at, keep and let go of it',
    group: 'Sandboxes:',
    load: async () => (await import('./commands/session.js')).sessionCommand,
  },
  {
    name: 'sandbox',
    summary: 'sandboxes: list, look at, start, stop, rename and end them',
    group: 'Sandboxes:',
    load: async () => (await import('./commands/sandbox.js')).sandboxCommand,
  },
  {
    name: 'shell',
    summary: 'list the shells of a sandbox, end one, or read what it has printed',
    group: 'Sandboxes:',
    load: async () => (await import('./commands/shell.js')).shellCommand,
  },
  {
    name: 'share',
    summary: 'let others into a thread’s sandbox',
    group: 'Sandboxes:',
    load: async () => (await import('./commands/share.js')).shareCommand,
  },
  {
    name: 'server',
    summary: 'run a server and look after its users, clients and keys',
    group: 'The other side:',
    load: async () => (await import('./commands/server.js')).serverCommand,
  },
  {
    name: 'admin',
    summary: 'look after everybody’s sandboxes, tenants, clients and the audit',
    group: 'The other side:',
    load: async () => (await import('./commands/admin.js')).adminCommand,
  },
  {
    name: 'config',
    summary: 'read and change settings',
    group: 'This program:',
    load: async () => (await import('./commands/config.js')).configCommand,
  },
  {
    name: 'doctor',
    summary: 'check that ailsd has what it needs, here and at the server',
    group: 'This program:',
    load: async () => (await import('./commands/doctor.js')).doctorCommand,
  },
  {
    name: 'api',
    summary: 'send any request to the server, with the login in use',
    group: 'This program:',
    load: async () => (await import('./commands/api.js')).apiCommand,
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
