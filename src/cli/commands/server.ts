/** `ailsd server`: the other side, run and looked after from here. The server is a program of its own. */
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { clientCommand } from '../server/clients.js';
import { initCommand } from '../server/init.js';
import { keysCommand } from '../server/keys.js';
import { migrateCommand } from '../server/migrate.js';
import { startCommand } from '../server/start.js';
import { trustCommand } from '../server/trust.js';
import { userCommand } from '../server/users.js';

export function serverCommand(context: Context): Command {
  const command = new Command('server')
    .description('run a server and look after its users, clients and keys')
    .example('ailsd server init --dir ./data', 'make one')
    .example('ailsd server start --dir ./data', 'run it');
  const parts = [
    initCommand,
    startCommand,
    userCommand,
    clientCommand,
    keysCommand,
    trustCommand,
    migrateCommand,
  ];
  for (const part of parts) command.addCommand(part(context));
  return command;
}
