/** Logging in on another device (RFC 8628): gets a code to show, then asks at the issuer's pace until somebody decided. */
import { Secret } from '../../base/secret.js';
import { AilsdError } from '../../protocol/errors.js';
import { parse } from '../../protocol/parse.js';
import {
  deviceCodeAnswer,
  GRANT_TYPES,
  MACHINE_NAME_MAX_CHARACTERS,
  pollIntervalSeconds,
  SLOW_DOWN_SECONDS,
} from '../../protocol/shapes/issuer.js';
import { createFetch } from '../http/fetch-adapter.js';
import { failureOf, failureOfAnswer, type Refusal, refusalText } from './grant-outcome.js';
import type { Issuer } from './issuer.js';
import type { Tokens } from './tokens.js';

export interface DeviceCode {
  /** What a person compares or types; printable ASCII. */
  readonly userCode: string;
  /** https, or http to this very machine, without a user name: checked. */
  readonly verificationUri: string;
  /** The same with the code in it: for a QR code and for the browser. */
  readonly verificationUriComplete: string | undefined;
  readonly expiresInSeconds: number;
  readonly intervalSeconds: number;
  readonly deviceCode: Secret;
  /** When it came, by the monotonic clock. */
  readonly receivedAt: number;
}

export interface DeviceCodeOptions {
  readonly signal?: AbortSignal | undefined;
  /** What this machine is called: shown to whoever approves. An issuer that does not know it passes it over. */
  readonly machineName?: string | undefined;
}

export async function requestDeviceCode(
  issuer: Issuer,
  scopes: readonly string[],
  { signal, machineName }: DeviceCodeOptions = {},
): Promise<DeviceCode> {
  const endpoint = issuer.metadata.device_authorization_endpoint;
  if (endpoint === undefined) {
    throw new AilsdError('LOGIN_FAILED', 'the server offers no login on another device', {
      hint: 'try `ailsd login --web`',
    });
  }
  // openid-client refuses an `interval` of 0, which counts as 5; hence a request of our own.
  const body = new URLSearchParams({ client_id: issuer.clientId, scope: scopes.join(' ') });
  const machine = machineName?.slice(0, MACHINE_NAME_MAX_CHARACTERS) ?? '';
  if (machine !== '') body.set('machine_name', machine);
  const headers = { accept: 'application/json' };
  const response = await createFetch(issuer.http)(endpoint, {
    method: 'POST',
    headers,
    body,
    signal,
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw failureOf(error);
  });
  const receivedAt = issuer.clock.monotonic();
  const value = await response.json().catch(() => undefined);
  if (response.status !== 200) throw failureOfAnswer(response, value);
  const parsed = parse(deviceCodeAnswer, value, 'LOGIN_FAILED', "the server's answer: ");
  if (!parsed.ok) throw parsed.error;
  const answer = parsed.value;
  return {
    userCode: answer.user_code,
    verificationUri: answer.verification_uri,
    verificationUriComplete: answer.verification_uri_complete,
    expiresInSeconds: answer.expires_in,
    intervalSeconds: pollIntervalSeconds(answer),
    deviceCode: new Secret(answer.device_code),
    receivedAt,
  };
}

/** What happens while one waits, for whoever wants to show it. */
export type WaitingNews =
  | { readonly kind: 'slowed'; readonly intervalMs: number }
  | { readonly kind: 'no-answer'; readonly failure: AilsdError; readonly nextInMs: number };

export interface WaitingOptions {
  readonly signal?: AbortSignal | undefined;
  readonly news?: ((news: WaitingNews) => void) | undefined;
}

/** Ends with tokens, LOGIN_DENIED, LOGIN_EXPIRED or LOGIN_FAILED, or throws the signal's reason. Never asks too soon. */
export async function awaitApproval(
  issuer: Issuer,
  code: DeviceCode,
  scopes: readonly string[],
  { signal, news }: WaitingOptions = {},
): Promise<Tokens> {
  const { clock } = issuer;
  const deadline = code.receivedAt + code.expiresInSeconds * 1000;
  const pace = new Pace(code.intervalSeconds * 1000);
  for (;;) {
    // Counted from the last answer, so that requests arrive at least this far apart however long each one takes.
    const due = clock.monotonic() + pace.gapMs;
    await sleepUntil(Math.min(due, deadline), issuer, signal);
    if (due >= deadline) throw expired();
    const asked = { device_code: code.deviceCode.reveal() };
    const outcome = await issuer.grant(GRANT_TYPES.deviceCode, asked, { scopes, signal });
    if (outcome.kind === 'granted') return outcome.tokens;
    if (outcome.kind === 'failed') {
      const { failure } = outcome;
      if (!failure.row.retryable) throw failure;
      pace.backOff(failure.details['retry_after_ms']);
      news?.({ kind: 'no-answer', failure, nextInMs: pace.gapMs });
    } else if (outcome.error === 'slow_down') {
      pace.slowDown();
      news?.({ kind: 'slowed', intervalMs: pace.gapMs });
    } else if (outcome.error === 'authorization_pending') {
      pace.answered();
    } else {
      throw endingOf(outcome);
    }
  }
}

const SLOW_DOWN_MS = SLOW_DOWN_SECONDS * 1000;
/** A clock here that runs fast asks too soon by the issuer's; once told so, we keep this much more distance. */
const SLOWED_MARGIN = 1.2;
const LONGEST_BACK_OFF_MS = 60_000;

/** How long to wait before the next request (RFC 8628 section 3.5). */
class Pace {
  #intervalMs: number;
  #margin = 1;
  #failures = 0;
  #atLeastMs = 0;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  get gapMs(): number {
    const ordinary = this.#intervalMs * this.#margin;
    const backedOff = Math.min(ordinary * 2 ** this.#failures, LONGEST_BACK_OFF_MS);
    return Math.max(ordinary, backedOff, this.#atLeastMs);
  }

  answered(): void {
    this.#failures = 0;
    this.#atLeastMs = 0;
  }

  /** For the rest of the login. */
  slowDown(): void {
    this.answered();
    this.#intervalMs += SLOW_DOWN_MS;
    this.#margin = SLOWED_MARGIN;
  }

  backOff(retryAfterMs: unknown): void {
    this.#failures += 1;
    const told = typeof retryAfterMs === 'number' ? retryAfterMs : 0;
    this.#atLeastMs = Math.min(told, LONGEST_BACK_OFF_MS);
  }
}

/** A timer may fire a moment early; the clock that never goes back decides. */
async function sleepUntil(
  due: number,
  { clock }: Issuer,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  for (let left = due - clock.monotonic(); left > 0; left = due - clock.monotonic()) {
    await clock.sleep(left, signal);
  }
}

function endingOf(refusal: Refusal): AilsdError {
  if (refusal.error === 'access_denied') {
    return new AilsdError('LOGIN_DENIED', 'the login was denied');
  }
  if (refusal.error === 'expired_token') return expired();
  return new AilsdError('LOGIN_FAILED', `the server refused the login (${refusalText(refusal)})`, {
    details: { oauth_error: refusal.error },
  });
}

function expired(): AilsdError {
  return new AilsdError('LOGIN_EXPIRED', 'nobody approved the login in time');
}
