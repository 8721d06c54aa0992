/** The figures an operator reads, as Prometheus wants them: counts and times by route, never a name of anybody or anything. */

import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Clock } from '../../base/clock.js';
import { isRouteName } from '../../protocol/routes.js';
import type { RouteCode } from './call.js';
import type { EndedExchange } from './exchange.js';

/** What may be asked for at the moment it is read; whoever fails is left out. */
export interface MetricsSources {
  /** Sandboxes that have not ended, by state. */
  sandboxesByState?(): Promise<Readonly<Record<string, number>>>;
  openSockets?(): number;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<'route' | 'status'>;
  readonly #durations: Histogram<'route'>;
  readonly #sweeps: Counter<'outcome'>;
  readonly #swept: Counter<'what'>;
  readonly #deliveries: Counter<'outcome'>;
  readonly #relayed: Counter<'direction'>;
  readonly #sockets: Gauge;
  readonly #sandboxes: Gauge<'state'>;
  readonly #clock: Clock;
  #sources: MetricsSources = {};
  #recent: { readonly atMs: number; readonly text: Promise<string> } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    const registers = [this.#registry];
    this.#requests = new Counter({
      name: 'ailsd_http_requests_total',
      help: 'Requests that have ended, by route and status; `gone`: the caller left first',
      labelNames: ['route', 'status'],
      registers,
    });
    this.#durations = new Histogram({
      name: 'ailsd_http_request_seconds',
      help: 'How long requests took; WebSockets are left out',
      labelNames: ['route'],
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60],
      registers,
    });
    this.#sweeps = new Counter({
      name: 'ailsd_sweeps_total',
      help: 'Sweeps of this replica over all leases, by how they went',
      labelNames: ['outcome'],
      registers,
    });
    this.#swept = new Counter({
      name: 'ailsd_swept_total',
      help: 'What those sweeps did',
      labelNames: ['what'],
      registers,
    });
    this.#deliveries = new Counter({
      name: 'ailsd_access_deliveries_total',
      help: 'Changes of access that were brought to a sandbox, by how that went',
      labelNames: ['outcome'],
      registers,
    });
    this.#relayed = new Counter({
      name: 'ailsd_relayed_bytes_total',
      help: 'Bytes of bodies and messages that went through the relay',
      labelNames: ['direction'],
      registers,
    });
    this.#sockets = new Gauge({
      name: 'ailsd_open_sockets',
      help: 'Connections that are WebSockets now',
      registers,
    });
    this.#sandboxes = new Gauge({
      name: 'ailsd_sandboxes',
      help: 'Sandboxes that have not ended, by state, over all replicas',
      labelNames: ['state'],
      registers,
    });
  }

  /** Where the figures come from that nobody counts along the way. */
  readFrom(sources: MetricsSources): void {
    this.#sources = { ...this.#sources, ...sources };
  }

  readonly requestEnded = ({ route, status, seconds }: EndedExchange): void => {
    const name = route !== undefined && isRouteName(route) ? route : 'other';
    this.#requests.inc({ route: name, status: status === undefined ? 'gone' : String(status) });
    if (status !== 101) this.#durations.observe({ route: name }, seconds);
  };

  sweepEnded(outcome: 'done' | 'failed', did: Readonly<Record<string, number>> = {}): void {
    this.#sweeps.inc({ outcome });
    for (const [what, count] of Object.entries(did)) this.#swept.inc({ what }, count);
  }

  deliveryEnded(outcome: 'done' | 'failed'): void {
    this.#deliveries.inc({ outcome });
  }

  relayed(direction: 'to_sandbox' | 'to_client', bytes: number): void {
    this.#relayed.inc({ direction }, bytes);
  }

  /** Anybody may read it as often as they like; the store is asked once in a while. */
  text(): Promise<string> {
    const now = this.#clock.monotonic();
    if (this.#recent === undefined || now - this.#recent.atMs >= KEPT_MS)
      this.#recent = { atMs: now, text: this.#collect() };
    return this.#recent.text;
  }

  async #collect(): Promise<string> {
    const { sandboxesByState, openSockets } = this.#sources;
    if (openSockets !== undefined) this.#sockets.set(openSockets());
    this.#sandboxes.reset();
    try {
      const states = (await sandboxesByState?.()) ?? {};
      for (const [state, count] of Object.entries(states)) this.#sandboxes.set({ state }, count);
    } catch {
      // The store is away: that is for /readyz to say.
    }
    return this.#registry.metrics();
  }

  readonly route: RouteCode = async () => ({
    headers: { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE },
    text: await this.text(),
  });
}

const KEPT_MS = 1_000;
