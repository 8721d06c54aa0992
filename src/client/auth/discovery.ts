/** Finds an issuer's endpoints by its URL (OpenID Connect Discovery), once for as long as an HTTP client lives. */
import { customFetch, discovery, type ServerMetadata } from 'openid-client';
import { AilsdError } from '../../protocol/errors.js';
import { parse } from '../../protocol/parse.js';
import { discoveryAnswer } from '../../protocol/shapes/issuer.js';
import { createFetch } from '../http/fetch-adapter.js';
import type { Http } from '../http/http.js';
import { failureOf } from './grant-outcome.js';
import { insecureFor } from './insecure.js';

const found = new WeakMap<Http, Map<string, Promise<ServerMetadata>>>();

export function discover(http: Http, url: string, signal?: AbortSignal): Promise<ServerMetadata> {
  const known = found.get(http) ?? new Map<string, Promise<ServerMetadata>>();
  found.set(http, known);
  let asked = known.get(url);
  if (asked === undefined) {
    asked = ask(http, url, signal);
    known.set(url, asked);
    // A failure is not remembered: the next one who asks tries again.
    asked.catch(() => known.delete(url));
  }
  return asked;
}

async function ask(
  http: Http,
  url: string,
  signal: AbortSignal | undefined,
): Promise<ServerMetadata> {
  const fetch = createFetch(http);
  const options = {
    [customFetch]: (address: string, init: Parameters<typeof fetch>[1]) =>
      fetch(address, { ...init, signal }),
    execute: insecureFor(url),
  };
  let metadata: ServerMetadata;
  try {
    metadata = (
      await discovery(new URL(url), 'none', undefined, undefined, options)
    ).serverMetadata();
  } catch (error) {
    signal?.throwIfAborted();
    const failure = failureOf(error);
    if (failure.code !== 'LOGIN_FAILED') throw failure;
    throw new AilsdError('LOGIN_FAILED', `there is no usable issuer at ${url}`, {
      cause: failure,
      details: failure.details,
    });
  }
  // openid-client has compared the issuer's name; that every endpoint is one we may send secrets to is ours to see.
  const parsed = parse(discoveryAnswer, metadata, 'LOGIN_FAILED', `what ${url} says of itself: `);
  if (!parsed.ok) throw parsed.error;
  const endpoints = Object.values(parsed.value).filter((value) => typeof value === 'string');
  if (url.startsWith('https:') && !endpoints.every((one) => one.startsWith('https:'))) {
    throw new AilsdError('LOGIN_FAILED', `${url} names an endpoint that is not https`);
  }
  return metadata;
}
