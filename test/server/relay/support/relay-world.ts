/** A broker whose one provider registers sandboxes wherever a test says, and sessions in them. */

import type { LookupFunction } from 'node:net';
import { join } from 'node:path';
import type { Principal } from '../../../../src/protocol/principal.js';
import type { RelayLimits } from '../../../../src/server/broker/relay/http-relay.js';
import type { VerifyToken } from '../../../../src/server/http/principal.js';
import type { Db } from '../../../../src/server/store/db.js';
import { migrate } from '../../../../src/server/store/migrations.js';
import { openStore } from '../../../../src/server/store/open-store.js';
import { temporaryFolder } from '../../../support/cli.js';
import { FolderProvider } from '../../../support/folder-provider.js';
import { ALICE, ensure } from '../../broker/support/client.js';
import { openReplica, type Replica, tokenOf } from '../../broker/support/replica.js';

export interface RelayWorld extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly db: Db;
  readonly provider: FolderProvider;
  readonly replica: Replica;
  readonly log: readonly string[];
  /** A new sandbox at this place. */
  sandboxAt(base: string, as?: Partial<Principal> & { readonly sub: string }): Promise<Registered>;
}

export interface Registered {
  readonly id: string;
  readonly sessionId: string;
  readonly threadId: string;
  /** The sandbox's own token, of its owner. */
  readonly token: string;
  readonly baseUrls: { readonly http: string; readonly ws: string };
}

export interface RelayWorldOptions {
  readonly limits?: Partial<RelayLimits>;
  readonly resolve?: LookupFunction;
  /** False: the provider's sandboxes check no tokens, so that clients are sent to the relay. */
  readonly validatesTokens?: boolean;
  readonly verify?: VerifyToken;
}

export async function relayWorld(options: RelayWorldOptions = {}): Promise<RelayWorld> {
  const folder = temporaryFolder();
  const db = await openStore(join(folder.path, 'store.db'));
  await migrate(db);
  const provider = new RegisteredPlaces(
    join(folder.path, 'cloud'),
    options.validatesTokens ?? true,
  );
  const log: string[] = [];
  const { limits, resolve, verify } = options;
  const relay = { limits, resolve };
  const replica = await openReplica({ db, provider, relay, verify, log: (line) => log.push(line) });
  let threads = 0;
  return {
    url: replica.url,
    port: Number(new URL(replica.url).port),
    db,
    provider,
    replica,
    log,
    async sandboxAt(base, as = ALICE) {
      provider.plan.endpoints = { httpUrl: base, wsUrl: base.replace(/^http/, 'ws') };
      threads += 1;
      const threadId = `thr_${threads}`;
      const reply = await ensure(replica.url, threadId, {
        as,
        headers: { Prefer: 'wait=10' },
        body: {
          scope: { type: 'thread', id: threadId },
          requested_capabilities: ['fs:rw', 'shell', 'process'],
        },
      });
      if (reply.status !== 200) throw new Error(JSON.stringify(reply.json));
      const { session_id: sessionId, sandbox, token } = reply.json;
      return {
        id: sandbox.id,
        sessionId,
        threadId,
        token,
        baseUrls: { http: sandbox.http_base_url, ws: sandbox.ws_base_url },
      };
    },
    async [Symbol.asyncDispose]() {
      await replica[Symbol.asyncDispose]();
      await db[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

class RegisteredPlaces extends FolderProvider {
  override readonly flags;

  constructor(folder: string, validatesTokens: boolean) {
    super(folder);
    this.flags = {
      isolation: 'none',
      egressControl: false,
      memoryLimit: false,
      snapshots: false,
      validatesTokens,
    } as const;
  }
}

export { ALICE, tokenOf };
