/** `ailsd admin client`: what a program's tokens may do at most, and what is put beside and into its sandboxes. */
import { Asker } from '../../client/sessions/asker.js';
import type { Document } from '../../client/sessions/call.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { fieldLines, shown, shownValue } from '../sessions/document-text.js';
import { collectPairs, type PageOptions, pageOptions } from '../sessions/options.js';
import { type Column, printPages } from '../sessions/pages.js';
import { createSessionWorld } from '../sessions/session-world.js';
import { type ClientSetOptions, collectCeiling, policyOf } from './client-policy.js';

export function adminClientCommand(context: Context): Command {
  const command = new Command('client')
    .description('what a client’s tokens may do at most, and what is put into its sandboxes')
    .example('ailsd admin client list', 'the clients that have a policy of their own');
  for (const part of [listCommand, getCommand, setCommand, removeCommand]) {
    command.addCommand(part(context));
  }
  return command;
}

function listCommand(context: Context): Command {
  return pageOptions(new Command('list'))
    .description('list the clients that have a policy of their own')
    .example('ailsd admin client list --json', 'for a script')
    .action((options: PageOptions) => runList(context, options));
}

function getCommand(context: Context): Command {
  return onClient('get')
    .description('print a client’s policy')
    .example('ailsd admin client get ailsd-cli', 'its ceiling, its environment, its sidecar')
    .action((client: string) => runGet(context, client));
}

function setCommand(context: Context): Command {
  return onClient('set')
    .option('--ceiling <capability>', 'the most its tokens may do; may be repeated', collectCeiling)
    .option('--no-ceiling', 'no limit of its own')
    .option('--env <name=value>', 'injected into its sandboxes; may be repeated', collectPairs)
    .option('--sidecar-image <image>', 'what runs beside its sandboxes')
    .option('--sidecar-audience <text>', 'what the sidecar’s own token is for')
    .option('--sidecar-scope <scope>', 'of the sidecar’s own token; may be repeated', collect)
    .option('--no-sidecar', 'nothing runs beside them')
    .option('--from <file>', 'the whole policy as JSON: a file, or - for standard input')
    .description('give a client a policy, or change it; what is not named stays')
    .example('ailsd admin client set ailsd-cli --ceiling fs:ro,shell:ro', 'its tokens only look')
    .example(
      'ailsd admin client set agent-7 --env HTTP_PROXY=http://proxy:3128',
      'in its sandboxes',
    )
    .example('ailsd admin client set agent-7 --from policy.json', 'all of it at once')
    .action((client: string, options: ClientSetOptions) => runSet(context, client, options));
}

function removeCommand(context: Context): Command {
  return onClient('rm')
    .description('remove a client’s policy: no ceiling, no sidecar, nothing injected')
    .example('ailsd admin client rm agent-7', 'back to what all have')
    .action((client: string) => runRemove(context, client));
}

function onClient(name: string): Command {
  return new Command(name).argument('<client_id>', 'which client');
}

const COLUMNS: readonly Column[] = [
  { heading: 'CLIENT', cell: (item) => shown(item, 'client_id') },
  { heading: 'CEILING', cell: (item) => shown(item, 'capability_ceiling') || 'none' },
  { heading: 'SIDECAR', cell: (item) => (item['sidecar'] ? 'yes' : 'no') },
  { heading: 'ENVIRONMENT', cell: (item) => namesOf(item['environment']) },
];

async function runList(context: Context, options: PageOptions): Promise<void> {
  const { callForPage } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal } = context;
  await printPages(context, options, COLUMNS, (query) =>
    callForPage(asker, 'listClients', { parameters: {}, query: { ...query }, signal }),
  );
}

async function runGet(context: Context, client: string): Promise<void> {
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal } = context;
  const parameters = { client_id: client };
  print(context, await callRoute(new Asker(world), 'getClient', { parameters, signal }));
}

async function runSet(context: Context, client: string, options: ClientSetOptions): Promise<void> {
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal } = context;
  const parameters = { client_id: client };
  const json = await policyOf(context, asker, client, options);
  print(context, await callRoute(asker, 'setClient', { parameters, json, signal }));
}

async function runRemove(context: Context, client: string): Promise<void> {
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal, output } = context;
  const parameters = { client_id: client };
  await callRoute(new Asker(world), 'deleteClient', { parameters, signal });
  output.result({ client_id: client, removed: true }, () =>
    escapeText(`${client} has no policy of its own any more`),
  );
}

function print({ output, style }: Context, policy: Document): void {
  output.result(policy, () => {
    const rows: [string, string][] = [
      ['ceiling', shown(policy, 'capability_ceiling') || 'none'],
      ['sidecar', shown(policy, 'sidecar') || 'none'],
      // Values may be secrets of whoever runs the server; --json has them.
      ['environment', namesOf(policy['environment']) || 'none'],
    ];
    return `${style.bold(shown(policy, 'client_id'))}\n${fieldLines(rows, style)}`;
  });
}

function namesOf(environment: unknown): string {
  const isGiven = typeof environment === 'object' && environment !== null;
  return isGiven ? shownValue(Object.keys(environment)) : '';
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
