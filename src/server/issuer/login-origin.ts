/** Where a login was asked for from, kept on its grant as an authorization detail (RFC 9396 section 2). */
import type { Grant } from 'oidc-provider';
import { fieldsIn } from './fields.js';

export interface LoginOrigin {
  readonly address: string;
  readonly userAgent: string;
  /** As it calls itself. */
  readonly machineName?: string | undefined;
}

const TYPE = 'ailsd_origin';

export function noteOrigin(grant: Grant, { address, userAgent, machineName }: LoginOrigin): void {
  grant.addRar({
    type: TYPE,
    address,
    user_agent: userAgent,
    ...(machineName !== undefined && { machine_name: machineName }),
  });
}

/** From a grant as it is stored; `undefined` where nobody noted it. */
export function originIn(details: unknown): LoginOrigin | undefined {
  const list: readonly unknown[] = Array.isArray(details) ? details : [];
  const found = list.map(fieldsIn).find(({ type }) => type === TYPE);
  if (found === undefined) return undefined;
  const { address, user_agent: userAgent, machine_name: machineName } = found;
  return {
    address: typeof address === 'string' ? address : '',
    userAgent: typeof userAgent === 'string' ? userAgent : '',
    ...(typeof machineName === 'string' && { machineName }),
  };
}
