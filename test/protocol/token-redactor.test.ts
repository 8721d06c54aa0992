/** Secrets in a stream, however it is cut. */
import { describe, expect, it } from 'vitest';
import { ByteRedactor } from '../../src/protocol/byte-redactor.js';
import { TokenRedactor } from '../../src/protocol/token-redactor.js';

const JWT = `eyJ${'a'.repeat(30)}.${'b'.repeat(40)}.${'c'.repeat(43)}`;
const KNOWN = 'S3cr3t/with+odd=chars-of-forty-bytes!!xy';
const SECRETS = [
  JWT,
  KNOWN,
  `ailsd_opaque_${'x'.repeat(43)}`,
  `ghp_${'A1'.repeat(18)}`,
  `github_pat_${'b2'.repeat(20)}`,
];

function through(pieces: readonly string[]): string {
  const redactor = new TokenRedactor([KNOWN]);
  return pieces.map((piece) => redactor.push(piece)).join('') + redactor.end();
}

describe('the redactor', () => {
  it('finds a secret however it is split, and leaves all else as it was', () => {
    for (const secret of SECRETS) {
      const text = `before ${secret} after e ey ai xo gh S3cr3 end ${secret}`;
      const expected = 'before [secret] after e ey ai xo gh S3cr3 end [secret]';
      for (let size = 1; size <= 64; size++) {
        for (let shift = 0; shift < size; shift++) {
          const pieces = [text.slice(0, shift)];
          for (let at = shift; at < text.length; at += size) pieces.push(text.slice(at, at + size));
          expect(through(pieces)).toBe(expected);
        }
      }
    }
  });

  it('shows no part of a secret of which another is a part, or that repeats its own beginning', () => {
    const redactor = new TokenRedactor(['abcdefgh-ijkl', 'cdefgh-i', 'abababab-ab']);
    let out = '';
    for (const character of 'x abcdefgh-ijkl y cdefgh-i z abababab-ab abababab-ab')
      out += redactor.push(character);
    expect(out + redactor.end()).toBe('x [secret] y [secret] z [secret] [secret]');
  });

  it('carries any bytes, and finds a secret that is not ASCII', () => {
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const secret = 'schlüssel-ключ-鍵';
    const bytes = Buffer.concat([all, Buffer.from(secret), all]);
    for (const size of [1, 3, 7, 300]) {
      const redactor = new ByteRedactor([secret]);
      const out: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += size)
        out.push(redactor.push(bytes.subarray(at, at + size)));
      out.push(redactor.end());
      expect(Buffer.concat(out)).toEqual(Buffer.concat([all, Buffer.from('[secret]'), all]));
    }
  });

  it('takes ordinary words for what they are', () => {
    const log = [
      'npm http fetch GET 200 https://registry.npmjs.org/eyeglass 12ms',
      'Aug 01 ailsd_server started; github_pattern; high_ghost_; task-list-of-things-to-do-tomorrow',
      'sha512-abc+def/0123456789== src/eyJoints.ts AKIAtomic xox-games 192.168.0.1',
    ].join('\n');
    expect(through([log])).toBe(log);
  });
});
