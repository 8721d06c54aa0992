/** Where a program without a person gets its identity, as data: the first source that is set, and no other. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { errorCode } from '../../base/error-code.js';
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';

/** A variable's value; unlike elsewhere, one that is set to nothing is set: a secret that CI did not have. */
export type Variables = (name: string) => string | undefined;

export type CredentialSource =
  /** An access token as it is: never refreshed, never replaced. `read` reads a file again each time. */
  | { readonly kind: 'token'; readonly variable: string; readonly read: () => Secret }
  | {
      readonly kind: 'client-secret';
      readonly variable: string;
      readonly clientId: string;
      readonly read: () => Secret;
    }
  /** Some other issuer's token, to be exchanged for one of ours. */
  | { readonly kind: 'identity-token'; readonly variable: string; readonly read: () => Secret }
  /** A CI system that gives out identity tokens on request. */
  | {
      readonly kind: 'github-oidc';
      readonly variable: string;
      readonly requestUrl: string;
      readonly requestToken: Secret;
    };

export const SECRET_MAX_BYTES = 16 * 1024;

/**
 * `undefined` where no source is set. Values are checked here, files when they are read: what a source holds and can't
 * be used is exit 4 and names the variable, for there is never another source to fall back to; half a setting is exit 2.
 */
export function findCredentialSource(variable: Variables): CredentialSource | undefined {
  return (
    token(variable, 'token', 'AILSD_TOKEN') ??
    clientSecret(variable) ??
    token(variable, 'identity-token', 'AILSD_IDENTITY_TOKEN') ??
    oidc(variable)
  );
}

function token(
  variable: Variables,
  kind: 'token' | 'identity-token',
  name: string,
): CredentialSource | undefined {
  const found = valueOrFile(variable, name);
  return found === undefined ? undefined : { kind, ...found };
}

function clientSecret(variable: Variables): CredentialSource | undefined {
  const clientId = variable('AILSD_CLIENT_ID');
  const secret = valueOrFile(variable, 'AILSD_CLIENT_SECRET');
  if (clientId === undefined && secret === undefined) return undefined;
  if (clientId === undefined) throw incomplete(secret?.variable ?? '', 'AILSD_CLIENT_ID');
  if (secret === undefined) {
    throw incomplete('AILSD_CLIENT_ID', 'AILSD_CLIENT_SECRET or AILSD_CLIENT_SECRET_FILE');
  }
  checkValue('AILSD_CLIENT_ID', clientId);
  return { kind: 'client-secret', clientId, ...secret };
}

function oidc(variable: Variables): CredentialSource | undefined {
  const system = variable('AILSD_OIDC');
  if (system === undefined) return undefined;
  if (system !== 'github') {
    throw new AilsdError('CONFIG_INVALID', 'AILSD_OIDC names a system that is not known', {
      details: { variable: 'AILSD_OIDC' },
      hint: 'AILSD_OIDC can be github; for other systems set AILSD_IDENTITY_TOKEN_FILE',
    });
  }
  const requestUrl = variable('ACTIONS_ID_TOKEN_REQUEST_URL');
  const requestToken = variable('ACTIONS_ID_TOKEN_REQUEST_TOKEN');
  if (!requestUrl || !requestToken || !URL.canParse(requestUrl)) {
    throw new AilsdError(
      'CONFIG_INVALID',
      'AILSD_OIDC=github, and this job gives out no identity',
      {
        details: { variable: 'AILSD_OIDC' },
        hint: 'run it in a GitHub Actions job with `permissions: id-token: write`',
      },
    );
  }
  checkValue('ACTIONS_ID_TOKEN_REQUEST_TOKEN', requestToken);
  const secret = new Secret(requestToken);
  return { kind: 'github-oidc', variable: 'AILSD_OIDC', requestUrl, requestToken: secret };
}

/** The value itself wins over the file that holds it. */
function valueOrFile(
  variable: Variables,
  name: string,
): { readonly variable: string; readonly read: () => Secret } | undefined {
  const value = variable(name);
  if (value !== undefined) {
    checkValue(name, value);
    const secret = new Secret(value);
    return { variable: name, read: () => secret };
  }
  const fileName = `${name}_FILE`;
  const path = variable(fileName);
  if (path === undefined) return undefined;
  if (path === '') throw refused(fileName, 'is set to nothing');
  return { variable: fileName, read: () => readSecret(fileName, path) };
}

function checkValue(name: string, value: string): void {
  if (value === '') throw refused(name, 'is set to nothing');
  if (Buffer.byteLength(value) > SECRET_MAX_BYTES) {
    throw refused(name, `holds more than ${SECRET_MAX_BYTES} bytes`);
  }
  // It goes into a header: visible ASCII, as every kind of token is.
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw refused(name, 'holds a space, a control character or one beyond ASCII');
  }
}

/** Whoever rotates the file replaces it under our feet, so it is read each time; a newline at its end is an editor's. */
function readSecret(name: string, path: string): Secret {
  const value = readFile(name, path).replace(/[\r\n]+$/, '');
  if (value === '') throw refused(name, `names an empty file: ${path}`);
  checkValue(name, value);
  return new Secret(value);
}

function readFile(name: string, path: string): string {
  let descriptor: number | undefined;
  try {
    // A pipe that nobody writes to would be waited for.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    if (!fstatSync(descriptor).isFile()) throw refused(name, `names no ordinary file: ${path}`);
    const buffer = Buffer.alloc(SECRET_MAX_BYTES + ROOM_FOR_NEWLINES + 1);
    let length = 0;
    while (length < buffer.length) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      if (read === 0) break;
      length += read;
    }
    return buffer.toString('utf8', 0, length);
  } catch (error) {
    if (error instanceof AilsdError) throw error;
    const code = errorCode(error) ?? 'unknown';
    throw refused(name, `names a file that cannot be read (${code}): ${path}`, error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

const ROOM_FOR_NEWLINES = 2;

/** The value is never repeated. */
function refused(variable: string, why: string, cause?: unknown): AilsdError {
  return new AilsdError('UNAUTHENTICATED', `${variable} ${why}`, {
    cause,
    details: { variable },
    hint: `mend ${variable}, or unset it to use another login`,
  });
}

function incomplete(variable: string, missing: string): AilsdError {
  return new AilsdError('CONFIG_INVALID', `${variable} is set and ${missing} is not`, {
    details: { variable },
    hint: `set ${missing} too`,
  });
}
