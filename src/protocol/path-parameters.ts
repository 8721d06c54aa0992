/** What each parameter in a path must be. One that is not is 400 by its name; one that names nothing is 404. */
import type * as z from 'zod/mini';
import { sha256 } from './frame-fields.js';
import type { PathParameter, ROUTES, RouteName } from './routes.js';
import {
  commandId,
  grantId,
  invocationId,
  name,
  plainId,
  principalId,
  sandboxId,
  sessionId,
  snapshotId,
  threadId,
} from './shapes/fields.js';
import { workspacePath } from './shapes/files.js';

export type PathParameterName = PathParameter<(typeof ROUTES)[RouteName]['path']>;

export const PATH_PARAMETERS = {
  client_id: principalId,
  command_id: commandId,
  grant_id: grantId,
  invocation_id: invocationId,
  login_id: plainId,
  path: workspacePath,
  sandbox_id: sandboxId,
  session_id: sessionId,
  shell_id: plainId,
  snapshot_id: snapshotId,
  tenant_id: name,
  thread_id: threadId,
  token_hash: sha256,
  trust_id: plainId,
} as const satisfies Record<PathParameterName, z.ZodMiniType<string, string>>;
