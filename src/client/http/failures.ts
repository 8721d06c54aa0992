/** Why there was no usable answer, as an error that says what to do: names, ports, certificates, time, proxies. */
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';
import { AnswerTooLong, PhaseTimeout } from './exchange.js';
import { ProxyRefused } from './proxy.js';

/** In `details.reason` of an UNREACHABLE. */
export type UnreachableReason =
  | 'dns'
  | 'refused'
  | 'no-route'
  | 'tls'
  | 'timeout'
  | 'cut'
  | 'proxy'
  | 'gateway';

export interface Attempt {
  readonly host: string;
  readonly signal: AbortSignal | undefined;
}

/** What to throw for it: an abort and an error of ours as they are, the rest by its cause. */
export function toFailure(error: unknown, { host, signal }: Attempt): unknown {
  if (error instanceof AilsdError) return error;
  if (signal?.aborted) return signal.reason;
  if (error instanceof PhaseTimeout) {
    const { phase, limitMs } = error;
    const message = `${host} ${PHASES[phase]} within ${limitMs / 1000} s`;
    return unreachable('timeout', message, { cause: error, details: { host, phase } });
  }
  if (error instanceof AnswerTooLong) {
    return mismatch(`the answer of ${host} is longer than ${error.maxBytes} bytes`, error, {
      host,
      max_bytes: error.maxBytes,
    });
  }
  if (error instanceof ProxyRefused) {
    const details = { host, proxy: error.proxy, status: error.status };
    return unreachable('proxy', error.message, { cause: error, details });
  }
  return fromSystem(error, host);
}

const PHASES = {
  connect: 'could not be connected to',
  headers: 'accepted the request and did not answer',
  body: 'began an answer and did not finish it',
} as const;

function fromSystem(error: unknown, host: string): AilsdError {
  const code = codeOf(error);
  if (code.startsWith('HPE_')) {
    return mismatch(`what ${host} answered is not HTTP`, error, { host, cause_code: code });
  }
  if (code === 'ERR_INVALID_CHAR' || code === 'ERR_UNESCAPED_CHARACTERS') {
    return new AilsdError('INVALID_REQUEST', 'a header or path has a character it may not have', {
      cause: error,
    });
  }
  const reason = reasonOf(code);
  return unreachable(reason, `${host} ${WORDS[reason]} (${code || 'no reason given'})`, {
    cause: error,
    details: { host, cause_code: code },
  });
}

function reasonOf(code: string): keyof typeof WORDS {
  if (code === 'ENOTFOUND' || code.startsWith('EAI_')) return 'dns';
  if (code === 'ECONNREFUSED') return 'refused';
  if (NO_ROUTE.has(code)) return 'no-route';
  if (code === 'ETIMEDOUT') return 'timeout';
  return TLS_CODE.test(code) ? 'tls' : 'cut';
}

const WORDS = {
  dns: 'is not a name that can be found',
  refused: 'refused the connection',
  'no-route': 'cannot be reached from here',
  timeout: 'could not be connected to in time',
  tls: 'has no certificate that is trusted here, or does not speak TLS',
  cut: 'closed the connection before it answered',
} as const;

const NO_ROUTE = new Set(['EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL', 'ENETDOWN', 'EHOSTDOWN']);

/** OpenSSL's verdicts on a certificate have no common prefix. */
const TLS_CODE =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_|INVALID_(CA|PURPOSE)|PATH_LENGTH_)/;

const HINTS: Readonly<Partial<Record<UnreachableReason, string>>> = {
  dns: 'check the spelling of the server URL: `ailsd config get url`',
  refused: 'check that the server runs and that the port is right: `ailsd config get url`',
  tls: "if the server uses a private authority, set AILSD_CA_FILE to its certificate; else check the address and this machine's clock",
  proxy: 'check HTTPS_PROXY, or name the host in NO_PROXY',
};

export function unreachable(
  reason: UnreachableReason,
  message: string,
  { cause, details }: { readonly cause?: unknown; readonly details: Record<string, unknown> },
): AilsdError {
  const hint = HINTS[reason];
  return new AilsdError('UNREACHABLE', message, {
    cause,
    details: { ...details, reason },
    ...(hint === undefined ? {} : { hint }),
  });
}

function mismatch(message: string, cause: unknown, details: Record<string, unknown>): AilsdError {
  return new AilsdError('PROTOCOL_MISMATCH', message, { cause, details });
}

/** Where several addresses were tried there are several errors; the first is as good as any. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return errorCode(error) ?? '';
}
