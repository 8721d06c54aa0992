/** A program of its own: writes, reads and deletes an entry in the system's keychain, and says on stdout how it went. */
import { randomUUID } from 'node:crypto';
import { Entry } from '@napi-rs/keyring';

/** A read alone says nothing: a locked or absent keychain answers it with "no entry". */
function probe(): { works: boolean; reason?: string } {
  const value = randomUUID();
  try {
    // Without the pin Linux falls back to the kernel's keyring, which forgets at reboot.
    const entry = new Entry('ailsd-doctor', value, { linux: { store: 'secret-service' } });
    entry.setPassword(value);
    const works = entry.getPassword() === value;
    entry.deleteCredential();
    return works ? { works } : { works, reason: 'what was written did not come back' };
  } catch (error) {
    return { works: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

process.stdout.write(JSON.stringify(probe()));
