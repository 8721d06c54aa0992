/** `init`: a data folder with its configuration, its store, the first keys, and a client that may do everything. */
import type { Secret } from '../../base/secret.js';
import { DEFAULT_TENANT } from '../../protocol/claims.js';
import { isScope, SCOPES, type Scope } from '../../protocol/scopes.js';
import { CLI_CLIENT_ID, GRANT_TYPES } from '../../protocol/shapes/issuer.js';
import { DEFAULT_STORE, readConfig } from '../config.js';
import { Clients } from '../store/clients.js';
import type { Db } from '../store/db.js';
import { IssuerKeys } from '../store/keys.js';
import { migrate } from '../store/migrations.js';
import { openStore } from '../store/open-store.js';
import { createClientSecret, hashClientSecret } from '../tokens/client-secret.js';
import { createSigningKey } from '../tokens/signing-keys.js';
import type { Inputs } from './config.js';
import { createDataFolder, freshId } from './data-folder.js';
import { audited, type World } from './place.js';

export async function init(input: Inputs['init'], world: World): Promise<object> {
  const { dir, url, store } = input;
  const file = { ...(url && { url }), store: store ?? DEFAULT_STORE };
  // Read back before anything is made: what can't be started is not created either.
  const config = readConfig({ folder: dir, file, variables: world.variables });
  return createDataFolder(dir, file, async () => {
    await using db = await openStore(config.store, { logger: world.logger });
    await migrate(db);
    await new IssuerKeys(db).addFirst({ purpose: 'signing', ...(await createSigningKey()) });
    await addCli(db);
    const { clientId, secret } = await addAdmin(db);
    return {
      dir,
      url: url ?? null,
      store: db.engine,
      client_id: clientId,
      // Shown this once; the store has its hash.
      client_secret: secret.reveal(),
      scopes: ALL_SCOPES,
    };
  });
}

const ALL_SCOPES: readonly Scope[] = Object.keys(SCOPES).filter(isScope);

/** What `ailsd login` is: anybody's program, so it has no secret; what it gets is up to who approves. */
async function addCli(db: Db): Promise<void> {
  await new Clients(db).add({
    clientId: CLI_CLIENT_ID,
    tenant: DEFAULT_TENANT,
    name: 'ailsd command line',
    kind: 'public',
    redirectUris: ['http://127.0.0.1/callback', 'http://localhost/callback'],
    grants: [
      GRANT_TYPES.deviceCode,
      GRANT_TYPES.authorizationCode,
      GRANT_TYPES.refreshToken,
      GRANT_TYPES.tokenExchange,
    ],
    allowedScopes: ALL_SCOPES,
  });
}

async function addAdmin(db: Db): Promise<{ readonly clientId: string; readonly secret: Secret }> {
  const clientId = freshId('svc');
  const secret = createClientSecret();
  await audited(db, async (tx) => {
    await new Clients(tx).add({
      clientId,
      tenant: DEFAULT_TENANT,
      name: 'first administrator',
      kind: 'confidential',
      secretHash: hashClientSecret(secret),
      redirectUris: [],
      grants: [GRANT_TYPES.clientCredentials, GRANT_TYPES.tokenExchange],
      allowedScopes: ALL_SCOPES,
    });
    return { result: undefined, record: { event: 'server_init', clientId } };
  });
  return { clientId, secret };
}
