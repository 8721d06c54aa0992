/** `ailsd admin`: what takes `admin:sandbox`, across owners and tenants. */

import { adminAuditCommand } from '../admin/audit.js';
import { adminClientCommand } from '../admin/clients.js';
import { adminQuotaCommand } from '../admin/quotas.js';
import { adminSandboxesCommand } from '../admin/sandboxes.js';
import { adminTenantCommand } from '../admin/tenants.js';
import { adminTrustCommand } from '../admin/trust.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';

export function adminCommand(context: Context): Command {
  const command = new Command('admin')
    .description('look after everybody’s sandboxes, tenants, clients and the audit')
    .example('ailsd admin sandboxes list --tenant acme', 'what runs there')
    .example('ailsd admin audit --since 2h', 'what happened lately');
  const parts = [
    adminSandboxesCommand,
    adminTenantCommand,
    adminQuotaCommand,
    adminClientCommand,
    adminTrustCommand,
    adminAuditCommand,
  ];
  for (const part of parts) command.addCommand(part(context));
  return command;
}
