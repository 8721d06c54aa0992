/** Finds the provider a sandbox is to be made by, or was made by. */
import { AilsdError } from '../../../protocol/errors.js';
import type { Provider } from '../../providers/provider.js';
import type { SandboxEnvironment } from '../../store/sandboxes.js';

/**
 * The preferred one where it is here and can enforce what the policy asks for; else the first that can. Never one that
 * can not.
 */
export function chooseProvider(
  providers: readonly Provider[],
  preference: string | undefined,
  environment: SandboxEnvironment,
): Provider {
  const able = providers.filter(
    ({ flags }) => environment !== 'internal-only' || flags.egressControl,
  );
  const chosen = able.find(({ name }) => name === preference) ?? able[0];
  if (chosen !== undefined) return chosen;
  throw new AilsdError('PROVIDER_UNAVAILABLE', 'no provider here can make such a sandbox', {
    internal: `environment ${environment}, providers ${providers.map(({ name }) => name).join(', ')}`,
    hint: 'ask whoever runs the server for a provider that can keep a sandbox off the network',
  });
}

export function providerNamed(providers: readonly Provider[], name: string): Provider {
  const found = providers.find((provider) => provider.name === name);
  if (found !== undefined) return found;
  throw new AilsdError('PROVIDER_UNAVAILABLE', "the sandbox's provider is not set up here", {
    internal: `provider ${name}`,
  });
}
