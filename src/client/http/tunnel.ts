/**
 * Connections through a proxy: CONNECT, then what the agent would have done itself.
 * By hand: https-proxy-agent leaves the connection to a proxy that never answers open after its request was given up,
 * reads that answer without a bound, and passes a proxy's refusal off as the server's answer.
 */
import { type Agent, request } from 'node:http';
import { Socket } from 'node:net';
import { connect, type SecureContext } from 'node:tls';
import { ProxyRefused } from './proxy.js';

export interface Tunnel {
  readonly proxy: URL;
  /** Whether TLS is spoken to the server at the far end. */
  readonly secure: boolean;
  readonly trust: SecureContext | undefined;
}

/** How long the proxy may be silent; whoever made the request has a limit of its own. */
const SILENCE_MS = 10_000;

/** Makes the agent connect through the proxy; the connection is handed over when it is ready for the request. */
export function tunnelThrough<A extends Agent>(agent: A, tunnel: Tunnel): A {
  // What is still being asked for is not among the agent's connections yet; it ends with them all the same.
  const ending = new AbortController();
  const destroy = agent.destroy.bind(agent);
  agent.destroy = () => {
    ending.abort();
    destroy();
  };
  agent.createConnection = (options, callback) => {
    const { host, port } = options;
    const servername =
      'servername' in options && typeof options.servername === 'string' ? options.servername : '';
    const target = { host: host ?? 'localhost', port: Number(port), servername };
    openTunnel(target, tunnel, ending.signal).then(
      (socket) => callback?.(null, socket),
      // Node looks at the error alone; the type wants a connection beside it.
      (error: unknown) =>
        callback?.(error instanceof Error ? error : new Error(String(error)), new Socket()),
    );
    return undefined;
  };
  return agent;
}

interface Target {
  readonly host: string;
  readonly port: number;
  readonly servername: string;
}

async function openTunnel(target: Target, tunnel: Tunnel, signal: AbortSignal): Promise<Socket> {
  const socket = await askProxy(target, tunnel, signal);
  if (!tunnel.secure) return socket.ref();
  const { host, servername } = target;
  const secured = connect({ socket, host, servername, ...trusting(tunnel.trust) });
  return new Promise((resolve, reject) => {
    secured.once('secureConnect', () => {
      secured.off('error', reject);
      socket.ref();
      resolve(secured);
    });
    secured.once('error', reject);
  });
}

async function askProxy(
  target: Target,
  { proxy, trust }: Tunnel,
  signal: AbortSignal,
): Promise<Socket> {
  const authority = `${target.host.includes(':') ? `[${target.host}]` : target.host}:${target.port}`;
  const agent = proxy.protocol === 'https:' ? await secureAgent(trust) : undefined;
  const asking = request({
    protocol: proxy.protocol,
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...authorization(proxy) },
    agent: agent ?? false,
    timeout: SILENCE_MS,
    signal,
  });
  return new Promise((resolve, reject) => {
    // The request's own timer keeps the process for as long as somebody waits; this connection alone does not.
    asking.once('socket', (socket) => socket.unref());
    asking.once('timeout', () => asking.destroy(new Error('the proxy is silent')));
    asking.once('error', reject);
    asking.once('connect', (answer, socket, rest) => {
      socket.setTimeout(0);
      if (answer.statusCode === 200) {
        // What follows the proxy's answer is the server's.
        if (rest.length > 0) socket.unshift(rest);
        resolve(socket);
      } else {
        socket.destroy();
        reject(new ProxyRefused(proxy.host, answer.statusCode ?? 0));
      }
    });
    asking.end();
  });
}

async function secureAgent(trust: SecureContext | undefined): Promise<Agent> {
  const https = await import('node:https');
  return new https.Agent(trusting(trust));
}

function trusting(trust: SecureContext | undefined): { secureContext?: SecureContext } {
  return trust === undefined ? {} : { secureContext: trust };
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
