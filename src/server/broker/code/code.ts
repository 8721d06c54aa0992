/** Code execution and the gateway, wired: the routes and sockets they serve, and the work behind them. */
import type { Scope } from '../../../base/scope.js';
import type { Secret } from '../../../base/secret.js';
import { ByteRedactor } from '../../../protocol/byte-redactor.js';
import type { RouteName } from '../../../protocol/routes.js';
import type { RouteCode } from '../../http/call.js';
import type { UpgradeCode } from '../../http/upgrade.js';
import type { SandboxKeys } from '../../tokens/sandbox-keys.js';
import { codeRoutes } from '../faces/code.js';
import { quotaRoutes } from '../faces/quotas.js';
import { computerByInvite } from '../gateway/computer.js';
import { executeByInvite } from '../gateway/execute.js';
import { type InvitedParts, InvitedSessions } from '../gateway/invited.js';
import { RELAY_LIMITS } from '../relay/http-relay.js';
import type { RelaySettings } from '../relay/relay.js';
import { SocketRelay } from '../relay/socket-relay.js';
import { Calls } from './calls.js';
import type { Redacting } from './output.js';
import { lookAfterCalls } from './recovery.js';
import { CodeRunner } from './run-code.js';
import { type TurnSettings, Turns } from './turns.js';

export interface CodeSettings extends TurnSettings {
  /** What takes secrets out of outputs; absent: the program's own. */
  readonly redactor?: ((secrets: readonly string[]) => Redacting) | undefined;
}

export interface CodeParts extends InvitedParts {
  readonly keys: SandboxKeys;
  readonly inviteSecret: Secret;
  readonly scope: Scope;
  readonly relay?: RelaySettings | undefined;
  readonly settings?: CodeSettings | undefined;
}

export interface CodeExecution {
  readonly routes: Partial<Record<RouteName, RouteCode>>;
  readonly upgrades: Partial<Record<RouteName, UpgradeCode>>;
  start(): void;
}

export function createCodeExecution(parts: CodeParts): CodeExecution {
  const { broker, replica, negotiator, scope, keys, inviteSecret, settings, relay } = parts;
  const { db, clock } = broker;
  const inBackground = (name: string, work: () => Promise<unknown>): void => scope.run(name, work);
  const turns = new Turns({ broker, replica, negotiator, inBackground, settings });
  const calls = new Calls({ broker, replica, turns });
  const createRedactor =
    settings?.redactor ?? ((secrets: readonly string[]) => new ByteRedactor(secrets));
  const runner = new CodeRunner({
    broker,
    redactorFor: ({ id, keyGeneration }) =>
      createRedactor([...spellings(keys.keyOf(id, keyGeneration)), inviteSecret.reveal()]),
  });
  const gateway = {
    db,
    clock,
    secret: inviteSecret,
    invited: new InvitedSessions(parts),
    calls,
    runner,
    sockets: new SocketRelay({
      limits: { ...RELAY_LIMITS, ...relay?.limits },
      resolve: relay?.resolve,
    }),
  };
  return {
    routes: { ...codeRoutes({ db, calls, runner, turns }), ...quotaRoutes(db) },
    upgrades: {
      executeByInvite: executeByInvite(gateway),
      computerByInvite: computerByInvite(gateway),
    },
    start() {
      scope.run('look after calls', (signal) => lookAfterCalls({ broker, replica, turns }, signal));
    },
  };
}

/** As a key is likely to be written. */
function spellings(key: Uint8Array): readonly string[] {
  const bytes = Buffer.from(key);
  return [bytes.toString('base64url'), bytes.toString('base64'), bytes.toString('hex')];
}
