/** Where clients reach a sandbox: at its own address, or through the relay where its provider cannot check tokens. */
import { relayPath } from '../../../protocol/routes/relay.js';
import type { Provider } from '../../providers/provider.js';
import type { PlaceOf } from './session-shapes.js';

export function placeFinder(url: string, providers: readonly Provider[]): PlaceOf {
  const direct = new Set(
    providers.filter((one) => one.flags.validatesTokens).map((one) => one.name),
  );
  return ({ id, provider, endpoints }) => {
    if (endpoints !== undefined && direct.has(provider)) return endpoints;
    const httpUrl = `${url}${relayPath(id)}`;
    return { httpUrl, wsUrl: httpUrl.replace(/^http/, 'ws') };
  };
}
