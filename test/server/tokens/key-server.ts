/** A key server on loopback that a test rotates, stops and counts the visits of. */
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JwksSource } from '../../../src/server/tokens/jwks-cache.js';
import type { Signer } from './forge.js';

export interface KeyServer extends AsyncDisposable {
  readonly url: string;
  /** Asks over the network, as a relay elsewhere would. */
  readonly source: JwksSource;
  /** When each visit came, by the clock that was given. */
  readonly visits: readonly number[];
  publish(...signers: readonly Signer[]): void;
  /** Another body than a key set. */
  say(body: string): void;
  /** Refuses connections from now on, or takes them again. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export async function keyServer(clock: () => number): Promise<KeyServer> {
  const visits: number[] = [];
  let body = '{"keys":[]}';
  let port = 0;
  let server: Server | undefined;
  const start = async (): Promise<void> => {
    server = createServer((_, response) => {
      visits.push(clock());
      response.end(body);
    });
    await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  };
  const stop = async (): Promise<void> => {
    const closing = server;
    server = undefined;
    closing?.closeAllConnections();
    await new Promise<void>((resolve) => (closing ? closing.close(() => resolve()) : resolve()));
  };
  await start();
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    source: { fetch: (signal) => getJson(`${url}/jwks`, signal) },
    visits,
    publish: (...signers) => {
      body = JSON.stringify({ keys: signers.map(({ jwk }) => jwk) });
    },
    say: (text) => {
      body = text;
    },
    start,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function getJson(url: string, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { signal, agent: false }, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (chunk: string) => {
        text += chunk;
      });
      incoming.on('error', reject);
      incoming.on('end', () => {
        try {
          resolve(JSON.parse(text));
        } catch (error) {
          reject(error);
        }
      });
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}
