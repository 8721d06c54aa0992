/** OAuth clients: add, list, shut out and let in again, give a new secret. */
import { AilsdError } from '../../protocol/errors.js';
import { type Client, Clients } from '../store/clients.js';
import { createClientSecret, hashClientSecret } from '../tokens/client-secret.js';
import { GRANTS, type Inputs } from './config.js';
import { freshId } from './data-folder.js';
import { audited, inPlace, LIST_MAX, timestamp, type World } from './place.js';

export async function addClient(input: Inputs['client-add'], world: World): Promise<object> {
  const { dir, tenant, name, kind, scopes, redirect_uris: redirectUris, jwks } = input;
  checkGrants(input);
  checkKeys(input);
  const clientId = input.client_id ?? freshId(kind === 'public' ? 'app' : 'svc');
  const secret = kind === 'confidential' && jwks === undefined ? createClientSecret() : undefined;
  const secretHash = secret === undefined ? undefined : hashClientSecret(secret);
  const grants = input.grants.map((grant) => GRANTS[grant]);
  return inPlace(dir, world, ({ db }) =>
    audited(db, async (tx) => {
      const allowed = { allowedScopes: scopes, grants, redirectUris };
      const clients = new Clients(tx);
      const proof = { secretHash, jwks };
      const added = await clients.add({ clientId, tenant, name, kind, ...proof, ...allowed });
      if (added === 'taken') {
        throw new AilsdError('ALREADY_EXISTS', `there is a client ${clientId}`, {
          details: { field: 'client_id' },
        });
      }
      const details = { name, kind, grants: input.grants, scopes };
      const record = { event: 'client_added', tenant, clientId, details };
      const client = toWire(await find(clients, clientId));
      const shown = secret === undefined ? {} : { client_secret: secret.reveal() };
      return { result: { ...client, ...shown }, record };
    }),
  );
}

/** Whoever can keep a key private is not public. */
function checkKeys({ kind, jwks }: Inputs['client-add']): void {
  if (kind !== 'public' || jwks === undefined) return;
  throw new AilsdError('USAGE', 'a public client has no keys', { details: { field: 'jwks' } });
}

export function disableClient(input: Inputs['client-disable'], world: World): Promise<object> {
  return setDisabled(input, world, true);
}

export function enableClient(input: Inputs['client-enable'], world: World): Promise<object> {
  return setDisabled(input, world, false);
}

export async function rotateClientSecret(
  input: Inputs['client-rotate-secret'],
  world: World,
): Promise<object> {
  const { dir, client_id: clientId } = input;
  const secret = createClientSecret();
  return inPlace(dir, world, ({ db }) =>
    audited(db, async (tx) => {
      const clients = new Clients(tx);
      const { tenant, kind } = await find(clients, clientId);
      if (kind === 'public') {
        throw new AilsdError('USAGE', `${clientId} is a public client: it has no secret`, {
          details: { field: 'client_id' },
        });
      }
      await clients.setSecretHash(clientId, hashClientSecret(secret));
      const record = { event: 'client_secret_rotated', tenant, clientId };
      return { result: { client_id: clientId, client_secret: secret.reveal() }, record };
    }),
  );
}

export async function listClients(input: Inputs['client-list'], world: World): Promise<object> {
  return inPlace(input.dir, world, async ({ db }) => {
    const clients = await new Clients(db).list(LIST_MAX);
    return { items: clients.map(toWire), next_cursor: null };
  });
}

async function setDisabled(
  { dir, client_id: clientId }: Inputs['client-disable'],
  world: World,
  isDisabled: boolean,
): Promise<object> {
  return inPlace(dir, world, ({ db }) =>
    audited(db, async (tx) => {
      const clients = new Clients(tx);
      const { tenant } = await find(clients, clientId);
      await clients.setDisabled(clientId, isDisabled);
      const event = isDisabled ? 'client_disabled' : 'client_enabled';
      return {
        result: toWire(await find(clients, clientId)),
        record: { event, tenant, clientId },
      };
    }),
  );
}

async function find(clients: Clients, clientId: string): Promise<Client> {
  const client = await clients.find(clientId);
  if (client !== undefined) return client;
  throw new AilsdError('NOT_FOUND', `there is no client ${clientId}`, {
    details: { field: 'client_id' },
    hint: 'see `ailsd server client list`',
  });
}

/** What would never work is said now, not at the first login. */
function checkGrants({ kind, grants, redirect_uris: uris }: Inputs['client-add']): void {
  const wrong = (field: string, message: string): never => {
    throw new AilsdError('USAGE', message, { details: { field } });
  };
  if (grants.length === 0) wrong('grants', 'a client needs at least one grant');
  if (kind === 'public' && grants.includes('client-credentials'))
    wrong('grants', 'a public client cannot prove itself, so client-credentials is not for it');
  if (grants.includes('code') && uris.length === 0)
    wrong('redirect_uris', 'the grant code needs a redirect URI');
}

function toWire(client: Client): object {
  return {
    client_id: client.clientId,
    name: client.name,
    tenant: client.tenant,
    kind: client.kind,
    grants: client.grants,
    scopes: client.allowedScopes,
    redirect_uris: client.redirectUris,
    created_at: timestamp(client.createdAtMs),
    disabled_at: client.disabledAtMs === undefined ? null : timestamp(client.disabledAtMs),
  };
}
