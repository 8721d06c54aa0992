/** `/internal/*`: what a sandbox asks the broker, once it has proven which sandbox it is. */
import type { RouteName } from '../../../protocol/routes.js';
import type { RouteCode } from '../../http/call.js';
import { checkOpaqueToken, type OpaqueParts } from '../tokens/opaque.js';

export function internalRoutes(parts: OpaqueParts): Partial<Record<RouteName, RouteCode>> {
  return {
    async checkOpaqueToken(call) {
      const hash = call.parameter('token_hash');
      return { body: await checkOpaqueToken(parts, call.sandboxId, hash) };
    },
  };
}
