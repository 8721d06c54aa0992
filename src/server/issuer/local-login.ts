/** What somebody types to say who they are: `TENANT/NAME`, or the name alone in the default tenant. */
import { DEFAULT_TENANT } from '../../protocol/claims.js';

export interface LocalLogin {
  /** `undefined` when no account can be called that. */
  readonly account: { readonly tenant: string; readonly name: string } | undefined;
  /** One for all spellings of an account: what guesses are counted by. */
  readonly key: string;
}

export function parseLogin(login: string): LocalLogin {
  const parts = login.split('/');
  const [tenant = '', name = ''] = parts.length === 1 ? [DEFAULT_TENANT, login] : parts;
  if (parts.length > 2 || tenant === '' || name === '') return { account: undefined, key: login };
  return { account: { tenant, name }, key: `${tenant}/${name}` };
}
