/** `token --thread`: a token for one sandbox, narrowed on request. Never makes a sandbox. */
import { InvalidArgumentError } from 'commander';
import { Asker } from '../../client/sessions/asker.js';
import { negotiateRemembered } from '../../client/sessions/remembered.js';
import type { Capability } from '../../protocol/capabilities.js';
import { AilsdError } from '../../protocol/errors.js';
import type { TokenOptions } from '../commands/token.js';
import type { Context } from '../context.js';
import { adjustmentText } from './negotiate.js';
import { collectCapabilities, parseSeconds } from './options.js';
import { createSessionWorld } from './session-world.js';
import { threadOf } from './thread-argument.js';

export async function runSandboxToken(context: Context, options: TokenOptions): Promise<void> {
  const capabilities = usable('--cap', () =>
    options.cap?.reduce<readonly Capability[]>((all, one) => collectCapabilities(one, all), []),
  );
  const ttlSeconds = usable('--ttl', () =>
    options.ttl === undefined ? undefined : parseSeconds(options.ttl),
  );
  using world = createSessionWorld(context);
  const thread = threadOf(context, options.thread);
  const request = { thread, mode: 'get', capabilities, ttlSeconds } as const;
  const { signal, output } = context;
  const { negotiated } = await negotiateRemembered(world, new Asker(world), request, { signal });
  const { fresh, grantedWords, sandboxId, sessionId, adjustments } = negotiated;
  const text = fresh.token.reveal();
  const document = {
    access_token: text,
    token_type: 'Bearer',
    expires_at: new Date(fresh.expiresAtMs).toISOString(),
    capabilities: grantedWords ?? null,
    thread_id: thread,
    session_id: sessionId,
    sandbox_id: sandboxId,
    http_base_url: negotiated.httpUrl,
    ws_base_url: negotiated.wsUrl,
  };
  output.result(document, () => text);
  for (const one of adjustments) output.notice(adjustmentText(one));
}

/** As commander would say it: these are read here, so that `ailsd token` alone does not load what reads them. */
function usable<T>(option: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new AilsdError('USAGE', `the value of ${option} cannot be used`, { hint: error.message });
  }
}
