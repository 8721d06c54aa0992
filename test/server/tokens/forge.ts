/** Makes access tokens, genuine and forged, with nothing but node:crypto: none of our code says what a good one is. */
import {
  constants,
  createHmac,
  createSign,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';

export const ISSUER = 'https://issuer.example';
export const AUDIENCE = 'https://broker.example';

export interface Signer {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;
}

export function createSigner(kid: string): Signer {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' };
  return { kid, privateKey, publicKey, jwk };
}

export type Fields = Readonly<Record<string, unknown>>;

export function goodHeader(signer: Signer): Fields {
  return { alg: 'RS256', typ: 'at+jwt', kid: signer.kid };
}

export function goodClaims(nowMs: number): Fields {
  const iat = Math.floor(nowMs / 1000);
  return {
    iss: ISSUER,
    sub: 'usr_0123456789abcdef',
    aud: AUDIENCE,
    client_id: 'ailsd-cli',
    scope: 'read:sandbox exec:sandbox',
    principal: 'user',
    tenant: 'acme',
    exp: iat + 900,
    iat,
    jti: 'tok_0123456789',
  };
}

/** The claims as text too, for what JSON.stringify would not write. */
export function signRs256(header: Fields, claims: Fields | string, key: KeyObject): string {
  const input = signingInput(header, claims);
  return `${input}.${createSign('RSA-SHA256').update(input).sign(key).toString('base64url')}`;
}

export function signingInput(header: Fields, claims: Fields | string): string {
  const payload = typeof claims === 'string' ? claims : JSON.stringify(claims);
  return `${encode(JSON.stringify(header))}.${encode(payload)}`;
}

export function encode(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}

export interface Forgery {
  readonly name: string;
  readonly token: string;
}

/** Every twist of TK-01, a few hundred; seeded mutations come on top. */
export function forgeries(signer: Signer, nowMs: number, canary: string): Forgery[] {
  const good = goodHeader(signer);
  const claims = goodClaims(nowMs);
  const iat = Math.floor(nowMs / 1000);
  const attacker = createSigner(signer.kid);
  const made: Forgery[] = [];
  const add = (name: string, token: string): void => void made.push({ name, token });
  const withHeader = (name: string, change: Fields, key = signer.privateKey): void =>
    add(`header ${name}`, signRs256(drop({ ...good, ...change }), claims, key));
  const withClaims = (name: string, change: Fields): void =>
    add(`claims ${name}`, signRs256(good, drop({ ...claims, ...change }), signer.privateKey));

  // Algorithms
  const genuine = signRs256(good, claims, signer.privateKey);
  const signature = genuine.split('.')[2] ?? '';
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
    const input = signingInput({ ...good, alg }, claims);
    add(`alg ${alg} unsigned`, `${input}.`);
    add(`alg ${alg} with the signature of RS256`, `${input}.${signature}`);
    add(`alg ${alg} really signed`, signRs256({ ...good, alg }, claims, signer.privateKey));
  }
  for (const [form, key] of Object.entries(publicKeyForms(signer))) {
    for (const [alg, hash] of [
      ['HS256', 'sha256'],
      ['HS384', 'sha384'],
      ['HS512', 'sha512'],
    ] as const) {
      for (const kid of [signer.kid, undefined]) {
        const input = signingInput(drop({ ...good, alg, kid }), claims);
        const mac = createHmac(hash, key).update(input).digest('base64url');
        add(`${alg} keyed with the public key as ${form}, kid ${kid}`, `${input}.${mac}`);
      }
    }
    const input = signingInput(good, claims);
    const mac = createHmac('sha256', key).update(input).digest('base64url');
    add(`RS256 by name, HMAC with ${form} in truth`, `${input}.${mac}`);
  }
  for (const [alg, hash] of [
    ['RS384', 'RSA-SHA384'],
    ['RS512', 'RSA-SHA512'],
    ['RS1', 'RSA-SHA1'],
  ] as const) {
    for (const called of [alg, 'RS256']) {
      const input = signingInput({ ...good, alg: called }, claims);
      const made = createSign(hash).update(input).sign(signer.privateKey).toString('base64url');
      add(`${alg} called ${called}`, `${input}.${made}`);
    }
  }
  for (const alg of ['PS256', 'PS384', 'PS512']) {
    for (const called of [alg, 'RS256']) {
      const input = signingInput({ ...good, alg: called }, claims);
      const pss = { key: signer.privateKey, padding: constants.RSA_PKCS1_PSS_PADDING };
      const made = sign(`sha${alg.slice(2)}`, Buffer.from(input), pss).toString('base64url');
      add(`${alg} called ${called}`, `${input}.${made}`);
    }
  }
  for (const [alg, curve] of [
    ['ES256', 'P-256'],
    ['ES384', 'P-384'],
    ['ES512', 'P-521'],
  ] as const) {
    const ec = generateKeyPairSync('ec', { namedCurve: curve });
    for (const extra of [{}, { jwk: ec.publicKey.export({ format: 'jwk' }) }]) {
      const input = signingInput({ ...good, alg, ...extra }, claims);
      const key = { key: ec.privateKey, dsaEncoding: 'ieee-p1363' } as const;
      add(
        `${alg} ${Object.keys(extra)}`,
        `${input}.${sign(`sha${alg.slice(2)}`, Buffer.from(input), key).toString('base64url')}`,
      );
    }
    // CVE-2022-21449: an ECDSA signature of zeros.
    add(`${alg} of zeros`, `${signingInput({ ...good, alg }, claims)}.${encode(Buffer.alloc(64))}`);
  }
  const ed = generateKeyPairSync('ed25519');
  const edInput = signingInput({ ...good, alg: 'EdDSA' }, claims);
  add(
    'EdDSA',
    `${edInput}.${sign(null, Buffer.from(edInput), ed.privateKey).toString('base64url')}`,
  );
  for (const alg of [
    'rs256',
    'RS256 ',
    ' RS256',
    'RSA-SHA256',
    ['RS256'],
    256,
    null,
    undefined,
    true,
    { a: 1 },
  ])
    withHeader(`alg ${JSON.stringify(alg)}`, { alg });
  add("another's key under our kid", signRs256(good, claims, attacker.privateKey));

  // Keys
  const kids = [
    undefined,
    '',
    'unknown',
    0,
    null,
    [signer.kid],
    `${signer.kid} `,
    signer.kid.toUpperCase(),
    '../../../../dev/null',
    '__proto__',
    'constructor',
    'toString',
    "' OR 1=1 --",
    'k'.repeat(10_000),
    `${canary}/kid`,
  ];
  for (const kid of kids) withHeader(`kid ${String(JSON.stringify(kid)).slice(0, 40)}`, { kid });
  for (const key of [signer, attacker]) {
    const whose = key === signer ? 'ours' : "another's";
    const hdr = (change: Fields): void =>
      withHeader(`${JSON.stringify(Object.keys(change))} ${whose}`, change, key.privateKey);
    for (const kid of [signer.kid, undefined, 'other']) {
      hdr({ jwk: attacker.jwk, kid });
      hdr({ jku: `${canary}/jwks`, kid });
      hdr({ x5u: `${canary}/cert`, kid });
      hdr({ x5c: [encode(attacker.publicKey.export({ format: 'der', type: 'spki' }))], kid });
      hdr({ jku: `${canary}/jwks`, jwk: attacker.jwk, x5u: canary, kid });
    }
    // Rules of its own
    for (const crit of [['exp'], ['b64'], ['http://x'], [], 'exp', null, ['alg'], [1]])
      hdr({ crit, exp: iat + 900 });
    hdr({ b64: false });
    hdr({ b64: false, crit: ['b64'] });
    hdr({ b64: true, crit: ['b64'] });
    hdr({ zip: 'DEF' });
    hdr({ enc: 'A256GCM' });
  }
  const unencoded = encode(JSON.stringify({ ...good, b64: false, crit: ['b64'] }));
  const bare = JSON.stringify(claims).replaceAll('.', '');
  add(
    'payload not encoded',
    `${unencoded}.${bare}.${createSign('RSA-SHA256').update(`${unencoded}.${bare}`).sign(signer.privateKey).toString('base64url')}`,
  );

  // Types
  for (const typ of [
    undefined,
    'JWT',
    'jwt',
    'at+JWT',
    'AT+JWT',
    'application/at+jwt',
    'application/jwt',
    'at+jwt ',
    'at jwt',
    'id+jwt',
    'logout+jwt',
    'dpop+jwt',
    '',
    1,
    null,
    ['at+jwt'],
    { typ: 'at+jwt' },
  ])
    withHeader(`typ ${JSON.stringify(typ)}`, { typ });

  // Claims
  for (const iss of [
    `${ISSUER}/`,
    ISSUER.toUpperCase(),
    'https://issuer.example.evil.test',
    'http://issuer.example',
    `${ISSUER}:443`,
    `${ISSUER}#`,
    ` ${ISSUER}`,
    [ISSUER],
    undefined,
    null,
    '',
    1,
    {},
    'https://other.example',
  ])
    withClaims(`iss ${JSON.stringify(iss)}`, { iss });
  for (const aud of [
    `${AUDIENCE}/`,
    AUDIENCE.toUpperCase(),
    'https://other.example',
    ['https://other.example'],
    [],
    [[AUDIENCE]],
    undefined,
    null,
    '',
    1,
    { 0: AUDIENCE },
    `${AUDIENCE} https://x`,
    [null],
    AUDIENCE.slice(0, -1),
    ISSUER,
    'sb_1',
    ['a', 1, AUDIENCE],
    [...Array.from({ length: 20 }, (_, index) => `https://a${index}`), AUDIENCE],
  ])
    withClaims(`aud ${String(JSON.stringify(aud)).slice(0, 60)}`, { aud });
  const past = iat - 900;
  for (const [exp, from] of [
    [undefined, iat],
    [null, iat],
    [String(iat + 900), iat],
    ['', iat],
    ['never', iat],
    [[iat + 900], iat],
    [true, iat],
    [{}, iat],
    [-1, iat],
    [0, iat],
    [iat - 31, past],
    [iat - 30, past],
    [iat - 3600, iat - 4000],
    [iat + 901, iat],
    [iat + 86_400, iat],
    [iat, iat],
    [iat - 1, iat],
    [1e21, iat],
    [new Date(nowMs + 900_000).toISOString(), iat],
  ] as const)
    withClaims(`exp ${JSON.stringify(exp)}`, { exp, iat: from });
  for (const text of ['1e309', '-1e309', '9'.repeat(400)])
    add(
      `claims exp ${text.slice(0, 8)} as bare JSON`,
      signRs256(
        good,
        JSON.stringify({ ...claims, exp: 0 }).replace('"exp":0', `"exp":${text}`),
        signer.privateKey,
      ),
    );
  add(
    'claims exp given twice, the second too late',
    signRs256(
      good,
      JSON.stringify(claims).replace('"exp"', `"exp":${iat + 60},"exp":${iat + 9_000},"x"`),
      signer.privateKey,
    ),
  );
  for (const nbf of [iat + 31, iat + 60, iat + 3600, String(iat), null, '', [iat], {}, true, -1])
    withClaims(`nbf ${JSON.stringify(nbf)}`, { nbf });
  for (const ahead of [61, 62, 120, 899, 3_600, 86_400])
    withClaims(`iat ${ahead} s ahead`, { iat: iat + ahead, exp: iat + ahead + 600 });
  for (const given of [undefined, null, String(iat), '', [iat], {}, -1, true])
    withClaims(`iat ${JSON.stringify(given)}`, { iat: given });
  const ids = [
    undefined,
    null,
    '',
    1,
    true,
    [],
    {},
    ['usr_1'],
    'a b',
    'a\nb',
    'é',
    'x'.repeat(256),
    '\u0000',
  ];
  for (const field of ['sub', 'client_id'])
    for (const value of ids)
      withClaims(`${field} ${String(JSON.stringify(value)).slice(0, 20)}`, { [field]: value });
  for (const jti of [undefined, null, '', 1, [], {}, 'a b', '-x', 'x'.repeat(129)])
    withClaims(`jti ${String(JSON.stringify(jti)).slice(0, 20)}`, { jti });
  for (const scope of [undefined, null, 1, ['read:sandbox'], {}, true, 'x'.repeat(1_025)])
    withClaims(`scope ${String(JSON.stringify(scope)).slice(0, 20)}`, { scope });
  for (const principal of [undefined, null, 'admin', 'USER', '', 1, ['user'], 'human', 'agent'])
    withClaims(`principal ${JSON.stringify(principal)}`, { principal });
  for (const tenant of [
    null,
    '',
    1,
    ['acme'],
    '../acme',
    'a b',
    'x'.repeat(65),
    '-acme',
    {},
    'acme/x',
  ])
    withClaims(`tenant ${String(JSON.stringify(tenant)).slice(0, 20)}`, { tenant });
  const deep = Array.from({ length: 9 }).reduce<unknown>(
    (act) => ({ sub: 'a', ...(act ? { act } : {}) }),
    undefined,
  );
  for (const act of [
    null,
    'agent',
    1,
    [],
    {},
    { sub: 1 },
    { client_id: 'x' },
    { sub: '' },
    { sub: 'a', act: 'b' },
    deep,
  ])
    withClaims(`act ${String(JSON.stringify(act)).slice(0, 30)}`, { act, principal: 'agent' });
  withClaims('room: an invite or a sandbox token', { room: 'thr_1' });
  withClaims('thread_id: a sandbox token', { thread_id: 'thr_1' });
  withClaims('scopes: an invite', { scopes: 'execution' });
  for (const threads of [[], 'thr_1', ['a b'], [1], Array.from({ length: 65 }, () => 't')])
    withClaims(`threads ${JSON.stringify(threads).slice(0, 20)}`, { threads });
  for (const text of ['null', '[]', '"text"', '1', '', '{', '{}', 'not json', '{"iss":"x"}'])
    add(`payload ${text}`, signRs256(good, text, signer.privateKey));

  // Shapes
  const [h = '', p = '', s = ''] = genuine.split('.');
  const other = signRs256(
    good,
    { ...claims, tenant: 'other', sub: 'usr_other' },
    attacker.privateKey,
  ).split('.');
  const promoted = encode(JSON.stringify({ ...claims, tenant: 'other', scope: 'admin:sandbox' }));
  for (const [name, token] of Object.entries({
    'another payload under a good signature': `${h}.${promoted}.${s}`,
    'another signature': `${h}.${p}.${other[2]}`,
    'another header': `${other[0]}x.${p}.${s}`,
    'no signature': `${h}.${p}`,
    'empty signature': `${h}.${p}.`,
    'four parts': `${genuine}.${s}`,
    'four parts, last empty': `${genuine}.`,
    'five parts': `${h}.${s}.${s}.${p}.${s}`,
    'first empty': `.${p}.${s}`,
    'second empty': `${h}..${s}`,
    'dots only': '..',
    'one dot': '.',
    'swapped parts': `${p}.${h}.${s}`,
    'signature twice': `${h}.${p}.${s}${s}`,
    'signature of zeros': `${h}.${p}.${encode(Buffer.alloc(256))}`,
    'signature of ff': `${h}.${p}.${encode(Buffer.alloc(256, 0xff))}`,
    'signature of one': `${h}.${p}.${encode(Buffer.concat([Buffer.alloc(255), Buffer.from([1])]))}`,
    'random signature': `${h}.${p}.${randomBytes(256).toString('base64url')}`,
    'signature too short': `${h}.${p}.${encode(Buffer.from(s, 'base64url').subarray(1))}`,
    'signature with a zero before': `${h}.${p}.${encode(Buffer.concat([Buffer.alloc(1), Buffer.from(s, 'base64url')]))}`,
    'signature padded': `${genuine}=`,
    'signature padded twice': `${genuine}==`,
    'signature with standard base64': `${h}.${p}.${Buffer.from(s, 'base64url').toString('base64').replace(/=+$/, '')}+`,
    'header with blanks': `${encode(` ${JSON.stringify(good)}`)}.${p}.${s}`,
    'random words': 'letmein',
    'a refresh token': randomBytes(32).toString('base64url'),
  }))
    add(`shape ${name}`, token);
  return made;
}

/** Ways to take the published key for a secret. */
function publicKeyForms({ publicKey, jwk }: Signer): Record<string, string | Buffer> {
  const pem = (type: 'spki' | 'pkcs1') => publicKey.export({ format: 'pem', type }).toString();
  const n = String(jwk['n']);
  return {
    'SPKI PEM': pem('spki'),
    'SPKI PEM without the last newline': pem('spki').trimEnd(),
    'SPKI PEM on one line': pem('spki').replaceAll('\n', ''),
    'PKCS1 PEM': pem('pkcs1'),
    'PKCS1 PEM without the last newline': pem('pkcs1').trimEnd(),
    'SPKI DER': publicKey.export({ format: 'der', type: 'spki' }),
    'PKCS1 DER': publicKey.export({ format: 'der', type: 'pkcs1' }),
    JWK: JSON.stringify(jwk),
    'JWK of kty, n and e': JSON.stringify({ e: jwk['e'], kty: 'RSA', n }),
    'a JWK set': JSON.stringify({ keys: [jwk] }),
    'the modulus': Buffer.from(n, 'base64url'),
    'the modulus as text': n,
    nothing: '',
  };
}

function drop(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Small damage at seeded places: flipped bits, cuts, changed, removed and added characters. Never the token itself. */
export function mutations(genuine: string, count: number, seed: number): Forgery[] {
  const random = randomOf(seed);
  const made: Forgery[] = [];
  const below = (limit: number): number => Math.floor(random() * limit);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  while (made.length < count) {
    const at = below(genuine.length);
    const kind = below(5);
    const character = alphabet[below(64)] ?? 'A';
    const token = [
      () => flipBit(genuine, at, below(6)),
      () => genuine.slice(0, at),
      () => genuine.slice(0, at) + character + genuine.slice(at + 1),
      () => genuine.slice(0, at) + genuine.slice(at + 1 + below(4)),
      () => genuine.slice(0, at) + character.repeat(1 + below(3)) + genuine.slice(at),
    ][kind]?.();
    if (token !== undefined && token !== genuine)
      made.push({ name: `mutation ${kind} at ${at}, seed ${seed}`, token });
  }
  return made;
}

/** Every bit of the last character of each part, and a bit in each of many places of each. */
export function bitFlips(genuine: string): Forgery[] {
  const made: Forgery[] = [];
  let start = 0;
  for (const [index, part] of genuine.split('.').entries()) {
    const places = [
      0,
      1,
      2,
      part.length - 2,
      ...Array.from({ length: 20 }, (_, step) => Math.floor((part.length * step) / 20)),
    ];
    for (const place of new Set(places)) {
      const token = flipBit(genuine, start + place, place % 6);
      made.push({ name: `bit ${place % 6} of character ${place} of part ${index}`, token });
    }
    for (let bit = 0; bit < 6; bit++) {
      const token = flipBit(genuine, start + part.length - 1, bit);
      made.push({ name: `bit ${bit} of the last character of part ${index}`, token });
    }
    start += part.length + 1;
  }
  return made;
}

/** Flips one of the six bits a base64url character stands for; a dot becomes another character. */
function flipBit(token: string, at: number, bit: number): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const value = Math.max(0, alphabet.indexOf(token[at] ?? 'A'));
  return token.slice(0, at) + (alphabet[value ^ (1 << bit)] ?? '') + token.slice(at + 1);
}

/** mulberry32 */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
