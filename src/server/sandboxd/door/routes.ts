/** Where code for the sandbox's routes is plugged in: HTTP routes and WebSocket endpoints, by their name in the protocol's table. */
import type { RouteName } from '../../../protocol/routes.js';
import type { Answer } from '../../http/call.js';
import type { Exchange } from '../../http/exchange.js';
import type { Identity } from '../access/identity.js';
import type { AnyEndpoint } from './connection.js';

export interface SandboxCall {
  readonly exchange: Exchange;
  /** Decoded and of the form the table asks for. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly identity: Identity;
  /** Ends when the caller goes, its token does, or the sandbox does. */
  readonly signal: AbortSignal;
}

export type SandboxRouteCode = (call: SandboxCall) => Answer | Promise<Answer>;

export interface SandboxRoutes {
  readonly http: Readonly<Partial<Record<RouteName, SandboxRouteCode>>>;
  readonly sockets: Readonly<Partial<Record<RouteName, AnyEndpoint>>>;
}
