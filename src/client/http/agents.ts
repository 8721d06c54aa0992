/** Who makes the connections: one keep-alive agent per way out (plain or TLS, direct or through a proxy), made when needed. */
import { Agent } from 'node:http';
import type { SecureContext } from 'node:tls';
import { type ProxySettings, proxyFor } from './proxy.js';

export interface AgentsOptions {
  readonly proxy: ProxySettings;
  readonly caFile: string | undefined;
}

/** Shorter than the 5 s after which servers close an idle connection, so that we rarely write into one just closed. */
const IDLE_MS = 4_000;
const MOST_SOCKETS_A_HOST = 16;

const KEPT = { keepAlive: true, timeout: IDLE_MS, maxSockets: MOST_SOCKETS_A_HOST } as const;

export class Agents {
  readonly #options: AgentsOptions;
  readonly #made = new Map<string, Promise<Agent>>();
  #trust: Promise<SecureContext> | undefined;

  constructor(options: AgentsOptions) {
    this.#options = options;
  }

  async of(url: URL): Promise<Agent> {
    const secure = url.protocol === 'https:';
    const proxy = await proxyFor(url, this.#options.proxy);
    const way = `${secure ? 'tls' : 'plain'} ${proxy?.href ?? 'direct'}`;
    let agent = this.#made.get(way);
    if (agent === undefined) {
      agent = this.#make(secure, proxy);
      this.#made.set(way, agent);
    }
    return agent;
  }

  close(): void {
    for (const agent of this.#made.values()) {
      // One that could not be made has told whoever asked for it.
      agent.then(
        (made) => made.destroy(),
        () => undefined,
      );
    }
    this.#made.clear();
  }

  async #make(secure: boolean, proxy: URL | undefined): Promise<Agent> {
    const agent = secure ? await this.#makeSecure() : new Agent(KEPT);
    if (proxy === undefined) return agent;
    const { tunnelThrough } = await import('./tunnel.js');
    return tunnelThrough(agent, { proxy, secure, trust: await this.#trusted() });
  }

  async #makeSecure(): Promise<Agent> {
    const https = await import('node:https');
    const trust = await this.#trusted();
    return new https.Agent(trust === undefined ? KEPT : { ...KEPT, secureContext: trust });
  }

  async #trusted(): Promise<SecureContext | undefined> {
    const { caFile } = this.#options;
    if (caFile === undefined) return undefined;
    this.#trust ??= import('./trust.js').then(({ trustAlso }) => trustAlso(caFile));
    return this.#trust;
  }
}
