/** Whom TLS trusts when the user names a certificate file: everybody it trusts anyway, and those. */

import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import tls, { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';

export function trustAlso(caFile: string): SecureContext {
  return createSecureContext({ ca: [...usualCertificates(), ...readCertificates(caFile)] });
}

const MOST_FILE_BYTES = 4 * 1024 * 1024;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Newer Nodes can also name the operating system's; older ones have only those they were built with. */
function usualCertificates(): readonly string[] {
  const list: unknown = Reflect.get(tls, 'getCACertificates');
  if (typeof list !== 'function') return rootCertificates;
  const kinds = ['default', 'system'];
  return [...new Set(kinds.flatMap((kind): string[] => list(kind)))];
}

function readCertificates(path: string): string[] {
  const certificates = readPem(path).match(PEM) ?? [];
  if (certificates.length === 0) throw unusable(path, 'it holds no PEM certificate');
  for (const pem of certificates) {
    try {
      new X509Certificate(pem);
    } catch (error) {
      throw unusable(path, 'a certificate in it is broken', error);
    }
  }
  return certificates;
}

function readPem(path: string): string {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) throw unusable(path, 'it is not a file');
    if (stat.size > MOST_FILE_BYTES) throw unusable(path, `it is over ${MOST_FILE_BYTES} bytes`);
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (error instanceof AilsdError) throw error;
    const code = errorCode(error) ?? 'unknown';
    throw unusable(path, `it cannot be read (${code})`, error);
  }
}

function unusable(path: string, why: string, cause?: unknown): AilsdError {
  return new AilsdError('CONFIG_INVALID', `AILSD_CA_FILE: ${path} is not usable: ${why}`, {
    cause,
    details: { variable: 'AILSD_CA_FILE' },
    hint: 'AILSD_CA_FILE names a file of PEM certificates',
  });
}
