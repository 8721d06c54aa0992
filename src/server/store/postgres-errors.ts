/** What PostgreSQL's error codes, and the loss of its connection, mean to the rooms above. */
import pg from 'pg';
import { AilsdError } from '../../protocol/errors.js';

/** The transaction lost against another and may be tried again from its beginning. */
export function isConflict(error: unknown): boolean {
  const refusal = refusalOf(error);
  return refusal !== undefined && CONFLICTS.has(refusal.code ?? '');
}

/** Whether the connection it came over can't be used any more. */
export function isConnectionLoss(error: unknown): boolean {
  const refusal = refusalOf(error);
  return refusal === undefined ? true : /^(08|57P|25P03)/.test(refusal.code ?? '');
}

export function toPostgresError(error: unknown): AilsdError {
  if (error instanceof AilsdError) return error;
  const refusal = refusalOf(error);
  const internal = error instanceof Error ? error.message : String(error);
  // The library's own errors are all about the connection: refused, reset, timed out, ended.
  if (refusal === undefined) return unavailable('the database can not be reached', error, internal);
  const code = refusal.code ?? '';
  const parts = { cause: error, internal: `${code} ${internal}` };
  if (CONFLICTS.has(code)) {
    return new AilsdError('BACKEND_UNAVAILABLE', 'too many changed the same at once', parts);
  }
  if (UNAVAILABLE.test(code))
    return unavailable('the database is not available', error, parts.internal);
  if (MISCONFIGURED.test(code)) {
    return new AilsdError('CONFIG_INVALID', 'the database does not let this program in', {
      ...parts,
      hint: 'check user, password, database and rights in the database URL',
    });
  }
  return new AilsdError('INTERNAL', 'the database refused a statement', parts);
}

/** serialization_failure, deadlock_detected. */
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01']);

/** Connection, resources (too many connections, disk full), timeouts and shutdowns, input or output. */
const UNAVAILABLE = /^(08|53|57014|57P|55P03|25P03|58030)/;

/** Authorization, no such database, no rights. */
const MISCONFIGURED = /^(28|3D|42501)/;

function unavailable(message: string, cause: unknown, internal: string): AilsdError {
  return new AilsdError('BACKEND_UNAVAILABLE', message, { cause, internal });
}

/** What the server said, also where it was given a new wrapping. */
function refusalOf(error: unknown): pg.DatabaseError | undefined {
  if (error instanceof pg.DatabaseError) return error;
  return error instanceof AilsdError && error.cause instanceof pg.DatabaseError
    ? error.cause
    : undefined;
}
