/** The relay: HTTP and WebSocket through the broker, to the registered place of one sandbox and nowhere else. */
import type { LookupFunction } from 'node:net';
import type { RouteName } from '../../../protocol/routes.js';
import type { RouteCode } from '../../http/call.js';
import type { Metrics } from '../../http/metrics.js';
import type { VerifyToken } from '../../http/principal.js';
import type { UpgradeCode } from '../../http/upgrade.js';
import type { SandboxKeys } from '../../tokens/sandbox-keys.js';
import { type WakeParts, wake } from '../sandboxes/wake.js';
import type { MintToken } from '../tokens/mint.js';
import { attachThroughRelay, commandRoutes } from './commands.js';
import { dataplaneRoutes, dataplaneUpgrades } from './dataplane.js';
import { HttpRelay, RELAY_LIMITS, type RelayLimits } from './http-relay.js';
import { Reach } from './reach.js';
import { SocketRelay } from './socket-relay.js';

export interface RelaySettings {
  readonly limits?: Partial<RelayLimits> | undefined;
  /** Where names lead; absent: where the system says. */
  readonly resolve?: LookupFunction | undefined;
}

export interface RelayParts extends WakeParts {
  readonly keys: SandboxKeys;
  readonly mint: MintToken;
  readonly verify: VerifyToken;
  readonly metrics?: Metrics | undefined;
  readonly settings?: RelaySettings | undefined;
}

export interface Relay {
  readonly routes: Partial<Record<RouteName, RouteCode>>;
  readonly upgrades: Partial<Record<RouteName, UpgradeCode>>;
}

export function createRelay(parts: RelayParts): Relay {
  const { broker, keys, mint, verify, metrics, settings } = parts;
  const { db, clock, providers } = broker;
  const limits = { ...RELAY_LIMITS, ...settings?.limits };
  const http = new HttpRelay({ limits, resolve: settings?.resolve, metrics });
  const sockets = new SocketRelay({ limits, resolve: settings?.resolve, metrics });
  const reach = new Reach({
    db,
    clock,
    mint,
    wake: (held, caller, signal) => wake(parts, held, caller, signal),
  });
  const commands = { reach, http, sockets, limits, verify };
  const dataplane = { db, clock, keys, providers, http, sockets, limits };
  return {
    routes: { ...commandRoutes(commands), ...dataplaneRoutes(dataplane) },
    upgrades: {
      attachThroughRelay: attachThroughRelay(commands),
      ...dataplaneUpgrades(dataplane),
    },
  };
}
