/** When all logins of a user were ended: by a new password, by being shut out, or by an administrator. */
import type { Migration } from '../migration.js';

export const endedLogins: Migration = {
  name: '0002-ended-logins',
  statements: () => ['ALTER TABLE users ADD COLUMN logins_ended_at BIGINT'],
};
