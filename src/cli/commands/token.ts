/** `ailsd token`: prints an access token that is good now. The shortest path there is: nothing is loaded that is not needed. */
import { currentAccess } from '../../client/auth/access.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { createAuthWorld } from '../login/auth-world.js';

export interface TokenOptions {
  readonly thread?: string;
  /** Read by who needs them: this file loads neither capabilities nor times. */
  readonly cap?: readonly string[];
  readonly ttl?: string;
}

export function tokenCommand(context: Context): Command {
  const command = new Command('token');
  return command
    .option('--thread <thread>', 'a token for this thread’s sandbox, and for nothing else')
    .option('--cap <capability>', 'what that one is to allow; may be repeated', collect)
    .option('--ttl <time>', 'how long that one is to live: 1m to 15m')
    .description('print an access token for scripts, renewed if need be')
    .example(
      'curl -H "Authorization: Bearer $(ailsd token)" $AILSD_URL/v1/whoami',
      'call the server yourself',
    )
    .example('ailsd token --json', 'with its scopes and its end')
    .example(
      'ailsd token --thread thr_demo --cap fs:ro --ttl 5m',
      'one that only reads, in one sandbox',
    )
    .action(async (options: TokenOptions) => {
      // AILSD_THREAD is the thread that other commands mean; it does not change what this one prints.
      const isNarrowed = ['thread', 'cap', 'ttl'].some(
        (name) => command.getOptionValueSource(name) === 'cli',
      );
      if (!isNarrowed) return runToken(context);
      const { runSandboxToken } = await import('../sessions/sandbox-token.js');
      await runSandboxToken(context, options);
    });
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

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
