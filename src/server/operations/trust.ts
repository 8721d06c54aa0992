/** Which identity tokens of other systems are let in, and as whom. */
import { AilsdError } from '../../protocol/errors.js';
import { type Trust, WorkloadTrust } from '../store/workload-trust.js';
import type { Inputs } from './config.js';
import { freshId } from './data-folder.js';
import { audited, inPlace, LIST_MAX, timestamp, type World } from './place.js';

export async function addTrust(input: Inputs['trust-add'], world: World): Promise<object> {
  const { dir, issuer, audience, claims, subject, tenant, scopes } = input;
  if (Object.keys(claims).length === 0) {
    throw new AilsdError('USAGE', 'a trust without claims would let every job in', {
      details: { field: 'claims' },
      hint: 'name what the token must say, such as --claim repository=acme/app',
    });
  }
  const id = freshId('trust');
  return inPlace(dir, world, ({ db }) =>
    audited(db, async (tx) => {
      const trust = { id, issuer, audience, claims, clientId: subject, tenant, scopes };
      await new WorkloadTrust(tx).add(trust);
      const details = { id, issuer, audience, subject, scopes };
      const record = { event: 'trust_added', tenant, details };
      return { result: toWire({ ...trust, createdAtMs: await tx.now() }), record };
    }),
  );
}

export async function listTrust(input: Inputs['trust-list'], world: World): Promise<object> {
  return inPlace(input.dir, world, async ({ db }) => {
    const items = await new WorkloadTrust(db).list(LIST_MAX);
    return { items: items.map(toWire), next_cursor: null };
  });
}

export async function removeTrust(input: Inputs['trust-rm'], world: World): Promise<object> {
  const { dir, id } = input;
  return inPlace(dir, world, ({ db }) =>
    audited(db, async (tx) => {
      if (!(await new WorkloadTrust(tx).remove(id))) {
        throw new AilsdError('NOT_FOUND', `there is no trust ${id}`, {
          details: { field: 'id' },
          hint: 'see `ailsd server trust list`',
        });
      }
      return { result: { id }, record: { event: 'trust_removed', details: { id } } };
    }),
  );
}

function toWire(trust: Trust): object {
  return {
    id: trust.id,
    issuer: trust.issuer,
    audience: trust.audience,
    claims: trust.claims,
    subject: trust.clientId,
    tenant: trust.tenant,
    scopes: trust.scopes,
    created_at: timestamp(trust.createdAtMs),
  };
}
