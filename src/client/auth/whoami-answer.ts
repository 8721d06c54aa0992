/** The server's answer to "who am I", checked by hand: a schema library would double the time of the command. */
import { AilsdError } from '../../protocol/errors.js';
import { isThreadId, type ThreadId } from '../../protocol/ids.js';
import type { WhoamiAnswer } from '../../protocol/shapes/whoami.js';

/** Takes what the schema `whoamiAnswer` takes; a test holds the two together. */
export function parseWhoami(value: unknown): WhoamiAnswer {
  const answer = record(value, 'body');
  const { act, threads, name } = answer;
  const isGiven = (member: unknown): boolean => member !== undefined && member !== null;
  return {
    sub: text(answer['sub'], 'sub'),
    ...(isGiven(name) ? { name: label(name, 'name') } : {}),
    principal: kind(answer['principal']),
    tenant: text(answer['tenant'], 'tenant'),
    client_id: text(answer['client_id'], 'client_id'),
    scopes: list(answer['scopes'], 'scopes'),
    expires_at: time(answer['expires_at']),
    ...(isGiven(act) ? { act: actor(act) } : {}),
    ...(isGiven(threads) ? { threads: list(threads, 'threads').map(thread) } : {}),
  };
}

const MOST_CHARACTERS = 1024;
const MOST_ITEMS = 64;

function record(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(field);
  return { ...value };
}

function text(value: unknown, field: string): string {
  if (typeof value !== 'string' || value === '' || value.length > MOST_CHARACTERS) {
    throw wrong(field);
  }
  return value;
}

/** For people, on one line. */
function label(value: unknown, field: string): string {
  const words = text(value, field);
  if (/^[^\x00-\x1f\x7f-\x9f]{1,128}$/.test(words)) return words;
  throw wrong(field);
}

function list(value: unknown, field: string): string[] {
  if (!Array.isArray(value) || value.length > MOST_ITEMS) throw wrong(field);
  return value.map((item) => text(item, field));
}

function thread(value: string): ThreadId {
  if (isThreadId(value)) return value;
  throw wrong('threads');
}

function kind(value: unknown): WhoamiAnswer['principal'] {
  if (value === 'user' || value === 'service' || value === 'agent') return value;
  throw wrong('principal');
}

function time(value: unknown): string {
  const written = text(value, 'expires_at');
  if (Number.isNaN(Date.parse(written))) throw wrong('expires_at');
  return written;
}

function actor(value: unknown): NonNullable<WhoamiAnswer['act']> {
  const { sub, client_id: clientId, ...others } = record(value, 'act');
  const named =
    clientId === undefined || clientId === null ? {} : { client_id: text(clientId, 'act') };
  return { ...others, sub: text(sub, 'act'), ...named };
}

/** The value is not repeated: nobody knows what it is. */
function wrong(field: string): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', `the server's answer: ${field} is of another form`, {
    details: { field },
  });
}
