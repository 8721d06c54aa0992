/** `ailsd token`: prints an access token that is good now. The shortest path there is: nothing is loaded that is not needed. */
import { currentAccess } from '../../client/auth/access.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { createAuthWorld } from '../login/auth-world.js';

export function tokenCommand(context: Context): Command {
  return new Command('token')
    .description('print an access token for scripts, renewed if need be')
    .example(
      'curl -H "Authorization: Bearer $(ailsd token)" $AILSD_URL/v1/whoami',
      'call the server yourself',
    )
    .example('ailsd token --json', 'with its scopes and its end')
    .action(() => runToken(context));
}

async function runToken(context: Context): Promise<void> {
  using world = createAuthWorld(context);
  const { token, expiresAtMs, scopes, origin } = await currentAccess(world);
  const text = token.reveal();
  const document = {
    access_token: text,
    token_type: 'Bearer',
    expires_at: expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
    scopes,
    account: origin.kind === 'stored' ? origin.account : null,
    source: origin.kind === 'variable' ? origin.variable : null,
  };
  context.output.result(document, () => text);
}
