/** Passwords as they are stored: scrypt with a salt each, in a form that names its own cost. */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { Secret } from '../../base/secret.js';

/** Longer ones would let a stranger make us hash for long. */
export const PASSWORD_MAX_CHARACTERS = 1_024;

/** OWASP's second choice: 32 MiB for each try, as slow for a guesser as 128 MiB once. */
const COST = { logN: 15, r: 8, p: 3 } as const;

/** What a stored hash may ask for at most, so that a forged row can't exhaust us. */
const MOST = { logN: 18, r: 16, p: 8 } as const;

const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** `$scrypt$ln=15,r=8,p=3$SALT$HASH`, in base64url. */
export async function hashPassword(password: Secret): Promise<Secret> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, COST);
  const { logN, r, p } = COST;
  const cost = `ln=${logN},r=${r},p=${p}`;
  return new Secret(`$scrypt$${cost}$${salt.toString('base64url')}$${hash.toString('base64url')}`);
}

/** False too for a hash of another form. Takes as long for a wrong password as for the right one. */
export async function verifyPassword(password: Secret, stored: Secret): Promise<boolean> {
  const match = STORED.exec(stored.reveal());
  if (match === null || password.reveal().length > PASSWORD_MAX_CHARACTERS) return false;
  const [, logN = '', r = '', p = '', salt = '', hash = ''] = match;
  const cost = { logN: Number(logN), r: Number(r), p: Number(p) };
  if (cost.logN > MOST.logN || cost.r > MOST.r || cost.p > MOST.p) return false;
  const expected = Buffer.from(hash, 'base64url');
  const actual = await derive(password, Buffer.from(salt, 'base64url'), cost);
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}

const STORED = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([\w-]{8,64})\$([\w-]{43})$/;

interface Cost {
  readonly logN: number;
  readonly r: number;
  readonly p: number;
}

/** The same letters typed on another keyboard may be other code points: NFKC makes them one. */
function derive(password: Secret, salt: Buffer, { logN, r, p }: Cost): Promise<Buffer> {
  const options = { N: 2 ** logN, r, p, maxmem: 160 * 2 ** logN * r };
  return new Promise((resolve, reject) => {
    scrypt(password.reveal().normalize('NFKC'), salt, HASH_BYTES, options, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}
