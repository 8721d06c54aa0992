/** `ailsd admin tenant`: whether a tenant may have sandboxes, and of which kind. */
import { Option } from 'commander';
import { Asker } from '../../client/sessions/asker.js';
import type { Document } from '../../client/sessions/call.js';
import { AilsdError } from '../../protocol/errors.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { fieldLines, shown } from '../sessions/document-text.js';
import { parseCount } from '../sessions/options.js';
import { createSessionWorld } from '../sessions/session-world.js';

interface SetOptions {
  readonly enable?: boolean;
  readonly disable?: boolean;
  readonly environment?: string;
  readonly tokenMode?: string;
  readonly auditRetentionDays?: number;
}

export function adminTenantCommand(context: Context): Command {
  return new Command('tenant')
    .description('a tenant’s policy: look at it, change it')
    .example('ailsd admin tenant get acme', 'what it may')
    .addCommand(getCommand(context))
    .addCommand(setCommand(context));
}

function getCommand(context: Context): Command {
  return new Command('get')
    .argument('<tenant>', 'which one')
    .description('print a tenant’s policy')
    .example('ailsd admin tenant get acme --json', 'for a script')
    .action((tenant: string) => runGet(context, tenant));
}

function setCommand(context: Context): Command {
  return new Command('set')
    .argument('<tenant>', 'which one')
    .addOption(new Option('--enable', 'it may have sandboxes').conflicts('disable'))
    .addOption(new Option('--disable', 'it may not, and neither may those it has go on'))
    .addOption(
      new Option('--environment <name>', 'what its sandboxes can reach').choices([
        'default-public',
        'internal-only',
      ]),
    )
    .addOption(
      new Option('--token-mode <mode>', 'opaque tokens can be ended at once').choices([
        'jwt',
        'opaque',
      ]),
    )
    .option('--audit-retention-days <days>', 'how long its audit is kept', parseCount)
    .description('change a tenant’s policy; what is not named stays')
    .example('ailsd admin tenant set acme --enable', 'let it have sandboxes')
    .example('ailsd admin tenant set acme --environment internal-only', 'without the internet')
    .action((tenant: string, options: SetOptions) => runSet(context, tenant, options));
}

async function runGet(context: Context, tenant: string): Promise<void> {
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal } = context;
  const parameters = { tenant_id: tenant };
  print(context, await callRoute(new Asker(world), 'getTenant', { parameters, signal }));
}

async function runSet(context: Context, tenant: string, options: SetOptions): Promise<void> {
  const { enable, disable, environment, tokenMode, auditRetentionDays } = options;
  const enabled = enable === true ? true : disable === true ? false : undefined;
  const json = {
    sandbox_enabled: enabled,
    environment,
    token_mode: tokenMode,
    audit_retention_days: auditRetentionDays,
  };
  if (Object.values(json).every((value) => value === undefined)) {
    throw new AilsdError('USAGE', 'nothing is to be changed', {
      hint: 'name what: --enable, --disable, --environment, --token-mode, --audit-retention-days',
    });
  }
  const { callRoute } = await import('../../client/sessions/call.js');
  using world = createSessionWorld(context);
  const { signal } = context;
  const parameters = { tenant_id: tenant };
  print(context, await callRoute(new Asker(world), 'setTenant', { parameters, json, signal }));
}

function print({ output, style }: Context, policy: Document): void {
  output.result(policy, () => {
    const rows: [string, string][] = [
      ['sandboxes', policy['sandbox_enabled'] === true ? style.good('yes') : style.warn('no')],
      ['environment', shown(policy, 'environment')],
      ['tokens', shown(policy, 'token_mode')],
      ['audit kept', `${shown(policy, 'audit_retention_days')} days`],
    ];
    return `${style.bold(shown(policy, 'id'))}\n${fieldLines(rows, style)}`;
  });
}
