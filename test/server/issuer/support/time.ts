/** Lets time pass in the store: what it remembers of polls moves into the past, and its clock stays what it is. */

import { hashId } from '../../../../src/server/issuer/device-codes.js';
import type { Db } from '../../../../src/server/store/db.js';

export async function passTime(db: Db, deviceCode: string, seconds: number): Promise<void> {
  await db.run(
    "UPDATE oidc_payloads SET last_poll_at = last_poll_at - ? WHERE kind = 'DeviceCode' AND id = ?",
    [seconds * 1000, hashId(deviceCode)],
  );
}
