/** `/v1/sandboxes/{id}/commands…` and `…/sessions/{sid}`: for callers with an access token, who never see the sandbox's own. */
import type { Capability } from '../../../protocol/capabilities.js';
import { CLOSES } from '../../../protocol/closes.js';
import { AilsdError } from '../../../protocol/errors.js';
import { SANDBOX_TOKEN_SECONDS } from '../../../protocol/lifetimes.js';
import type { Schema } from '../../../protocol/parse.js';
import type { Principal } from '../../../protocol/principal.js';
import { ROUTES, type RouteName } from '../../../protocol/routes.js';
import { holdsAnyScope } from '../../../protocol/scopes.js';
import { commandLogQuery } from '../../../protocol/shapes/commands.js';
import { pageQuery } from '../../../protocol/shapes/envelope.js';
import type { Answer, Call, RouteCode } from '../../http/call.js';
import type { VerifyToken } from '../../http/principal.js';
import type { UpgradeCode } from '../../http/upgrade.js';
import { callerOf } from '../faces/request-headers.js';
import type { Caller } from '../sessions/caller.js';
import { authFrame, seeFrame } from './auth-frames.js';
import type { Bridge } from './bridge.js';
import { type HttpRelay, knownQuery, type RelayLimits } from './http-relay.js';
import { isSamePrincipal, type Reach } from './reach.js';
import type { SocketRelay } from './socket-relay.js';

export interface CommandRelayParts {
  readonly reach: Reach;
  readonly http: HttpRelay;
  readonly sockets: SocketRelay;
  readonly limits: RelayLimits;
  /** For a fresh access token on a live connection. */
  readonly verify: VerifyToken;
}

interface Relayed {
  readonly path: string;
  readonly capabilities: readonly Capability[];
  readonly needed?: Capability;
  readonly query?: Schema;
  readonly hasBody?: boolean;
  readonly waits?: boolean;
}

/** Whoever may run commands may learn how they went; so may whoever may read. */
const LOOK = ['process', 'fs:ro'] as const satisfies readonly Capability[];
const RUN = ['process'] as const satisfies readonly Capability[];

export function commandRoutes(parts: CommandRelayParts): Partial<Record<RouteName, RouteCode>> {
  const send = (call: Call, relayed: Relayed) => relay(parts, call, relayed);
  const commandPath = (call: Call): string =>
    `/v1/commands/${encodeURIComponent(call.parameter('command_id'))}`;
  return {
    runCommand: (call) =>
      send(call, {
        path: '/v1/exec',
        capabilities: RUN,
        needed: 'process',
        hasBody: true,
        waits: true,
      }),
    listCommands: (call) =>
      send(call, { path: '/v1/commands', capabilities: LOOK, query: pageQuery }),
    getCommand: (call) => send(call, { path: commandPath(call), capabilities: LOOK }),
    getCommandLogs: (call) =>
      send(call, { path: `${commandPath(call)}/logs`, capabilities: LOOK, query: commandLogQuery }),
    endCommand: (call) =>
      send(call, { path: commandPath(call), capabilities: RUN, needed: 'process' }),
  };
}

async function relay(parts: CommandRelayParts, call: Call, relayed: Relayed): Promise<Answer> {
  const { exchange } = call;
  const { query: schema, hasBody = false, waits = false } = relayed;
  const query = schema === undefined ? {} : knownQuery(call, schema);
  const reached = await parts.reach.reach(callerOf(call), {
    sandboxId: call.parameter('sandbox_id'),
    capabilities: relayed.capabilities,
    needed: relayed.needed,
    // A command may outlive any token; it was let in when it began.
    lifeSeconds: SANDBOX_TOKEN_SECONDS.min,
    signal: exchange.signal,
  });
  exchange.note({ sandbox_id: reached.sandbox.id, relayed_as: reached.jti });
  try {
    return await parts.http.relay(exchange, {
      baseUrl: reached.endpoints.httpUrl,
      method: exchange.request.method ?? 'GET',
      path: relayed.path,
      query,
      token: reached.token,
      answerMs: waits ? parts.limits.commandMs : parts.limits.answerMs,
      hasBody,
      isEndless: query['follow'] !== undefined,
    });
  } catch (thrown) {
    // Perhaps it did not take the token, which may have been ended since.
    parts.reach.forget(reached.token);
    throw thrown;
  }
}

export function attachThroughRelay(parts: CommandRelayParts): UpgradeCode {
  return async (call) => {
    const caller = callerOf(call);
    const sandboxId = call.parameter('sandbox_id');
    const shellId = call.parameter('shell_id');
    const { signal } = call.exchange;
    const reached = await reachShell(parts, caller, sandboxId, signal);
    call.exchange.note({ sandbox_id: sandboxId, relayed_as: reached.jti });
    const target = {
      wsUrl: reached.endpoints.wsUrl,
      path: '/v1/shell/ws',
      token: reached.token,
    };
    await parts.sockets.join(call, target, (text, bridge) => {
      const seen = seeFrame(text);
      switch (seen.kind) {
        case 'other':
          return text;
        case 'start':
          return JSON.stringify({ ...seen.frame, ...(shellId !== NEW && { shell_id: shellId }) });
        case 'auth':
          return renew(
            parts,
            { ...caller, sandboxId, signal },
            () => parts.verify(seen.token),
            bridge,
          );
      }
    });
  };
}

/** In the place of a shell's id: one that the sandbox names. */
const NEW = 'new';

function reachShell(
  { reach }: CommandRelayParts,
  caller: Caller,
  sandboxId: string,
  signal: AbortSignal,
) {
  return reach.reach(caller, {
    sandboxId,
    capabilities: ['shell'],
    needed: 'shell:ro',
    lifeSeconds: SANDBOX_TOKEN_SECONDS.max,
    signal,
  });
}

interface Attached extends Caller {
  readonly sandboxId: string;
  readonly signal: AbortSignal;
}

/** A fresh access token of the same caller becomes a fresh token of the sandbox; any other ends the connection. */
async function renew(
  parts: CommandRelayParts,
  { sandboxId, signal, ...caller }: Attached,
  verify: () => Promise<Principal>,
  bridge: Bridge,
): Promise<string | undefined> {
  try {
    const principal = await verify();
    const { scopes } = ROUTES.attachThroughRelay;
    if (!isSamePrincipal(principal, caller.principal) || !holdsAnyScope(principal.scopes, scopes))
      throw new AilsdError('UNAUTHENTICATED', 'another caller');
    const { token } = await reachShell(parts, { ...caller, principal }, sandboxId, signal);
    return authFrame(token);
  } catch (thrown) {
    const error = thrown instanceof AilsdError ? thrown : undefined;
    bridge.end(CLOSES[error?.row.close ?? 'internal']);
    return undefined;
  }
}
