/** Plain http is for an issuer on this very machine alone, and then for all its endpoints. */
import { allowInsecureRequests, type Configuration } from 'openid-client';

/** What openid-client is to do with a configuration before its first request. */
export function insecureFor(issuerUrl: string): ((configuration: Configuration) => void)[] {
  // The settings accept http for loopback only; https issuers can't lead us to an http endpoint.
  return new URL(issuerUrl).protocol === 'http:' ? [allowInsecureRequests] : [];
}
