/** Passwords and client secrets as they are stored: only the right one fits, and the row tells nothing. */
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.js';
import {
  createClientSecret,
  hashClientSecret,
  verifyClientSecret,
} from '../../../src/server/tokens/client-secret.js';
import { hashPassword, verifyPassword } from '../../../src/server/tokens/password.js';

describe('passwords', () => {
  it('the right one fits and others do not, however it was typed', async () => {
    const hash = await hashPassword(new Secret('pâsswörd'));
    expect(hash.reveal()).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$[\w-]{22}\$[\w-]{43}$/);
    // The same letters as base and accent.
    expect(await verifyPassword(new Secret('pâsswörd'.normalize('NFD')), hash)).toBe(true);
    for (const wrong of ['password', 'pâsswörd ', '', 'PÂSSWÖRD'])
      expect(await verifyPassword(new Secret(wrong), hash), wrong).toBe(false);
  });

  it('two hashes of one password differ', async () => {
    const [one, two] = [
      await hashPassword(new Secret('same')),
      await hashPassword(new Secret('same')),
    ];
    expect(one.reveal()).not.toBe(two.reveal());
  });

  it('a stored text of another form fits nothing and costs nothing', async () => {
    const forms = [
      '',
      'plain',
      '$2b$10$abcdefghijklmnopqrstuv',
      `$scrypt$ln=31,r=8,p=1$${'a'.repeat(22)}$${'a'.repeat(43)}`,
      `$scrypt$ln=15,r=99,p=1$${'a'.repeat(22)}$${'a'.repeat(43)}`,
    ];
    const begin = performance.now();
    for (const form of forms)
      expect(await verifyPassword(new Secret('plain'), new Secret(form)), form).toBe(false);
    const hash = new Secret(`$scrypt$ln=15,r=8,p=3$${'a'.repeat(22)}$${'a'.repeat(43)}`);
    expect(await verifyPassword(new Secret('x'.repeat(1_025)), hash)).toBe(false);
    expect(performance.now() - begin).toBeLessThan(100);
  });
});

describe('client secrets', () => {
  it('each is new, fits its own hash and no other', () => {
    const [one, two] = [createClientSecret(), createClientSecret()];
    expect(one.reveal()).toMatch(/^ailsd_secret_[\w-]{43}$/);
    expect(one.reveal()).not.toBe(two.reveal());
    expect(verifyClientSecret(one, hashClientSecret(one))).toBe(true);
    expect(verifyClientSecret(two, hashClientSecret(one))).toBe(false);
    expect(hashClientSecret(one).reveal()).not.toContain(one.reveal().slice(13));
    for (const form of ['', one.reveal(), '$sha256$short', `$sha256$${'!'.repeat(43)}`])
      expect(verifyClientSecret(one, new Secret(form)), form).toBe(false);
  });
});
