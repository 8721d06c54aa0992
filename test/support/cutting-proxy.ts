/** A TCP proxy that cuts: by a seed, at any byte, in either direction, with FIN, RST or silence; and that can be dead for a while. */
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface CuttingProxy extends AsyncDisposable {
  readonly port: number;
  /** Connections that were made to it. */
  readonly connections: number;
  readonly cuts: number;
  /** Called for each connection as it comes. */
  onAccept: () => void;
  /** Cuts everything that is open, now. */
  cut(how?: 'fin' | 'rst'): void;
  /** Bytes are taken and go nowhere, as on a line whose other end has vanished. */
  freeze(isFrozen: boolean): void;
  /** New connections are refused (and open ones cut), or served again. */
  refuse(isRefusing: boolean): Promise<void>;
}

export interface CutPlan {
  /** In [0, 1). */
  readonly random: () => number;
  /** Each connection is cut after so many bytes on average. */
  readonly meanBytes: number;
  readonly maxCuts: number;
  /** Bytes count only while it says so; always, where it is absent. */
  readonly isOn?: () => boolean;
}

export async function cuttingProxy(target: number, plan?: CutPlan): Promise<CuttingProxy> {
  const open = new Set<readonly [Socket, Socket]>();
  let connections = 0;
  let cuts = 0;
  let isFrozen = false;

  const end = (pair: readonly [Socket, Socket], how: 'fin' | 'rst'): void => {
    if (!open.delete(pair)) return;
    for (const socket of pair) {
      if (how === 'rst') socket.resetAndDestroy();
      else {
        socket.end();
        socket.destroySoon();
      }
    }
  };

  const listen = (port: number): Promise<Server> =>
    new Promise((resolve, reject) => {
      const made = createServer((near) => {
        connections += 1;
        proxy.onAccept();
        const far = connect(target, '127.0.0.1');
        const pair = [near, far] as const;
        open.add(pair);
        near.setNoDelay();
        far.setNoDelay();
        // Of both directions together, so that cuts come during the upgrade, in replays and in the middle of frames.
        let left =
          plan === undefined || cuts >= plan.maxCuts
            ? Number.POSITIVE_INFINITY
            : Math.ceil(-Math.log(1 - plan.random()) * plan.meanBytes);
        const pass = (from: Socket, to: Socket): void => {
          from.on('data', (chunk: Buffer) => {
            if (isFrozen || !open.has(pair)) return;
            const part = chunk.subarray(0, left);
            if (plan?.isOn?.() !== false) left -= part.length;
            if (part.length > 0 && !to.write(part)) {
              from.pause();
              to.once('drain', () => from.resume());
            }
            if (left > 0) return;
            cuts += 1;
            end(pair, (plan?.random() ?? 0) < 0.5 ? 'rst' : 'fin');
          });
          from.on('error', () => end(pair, 'rst'));
          from.on('close', () => {
            if (!isFrozen) end(pair, 'fin');
          });
        };
        pass(near, far);
        pass(far, near);
      });
      made.once('error', reject);
      made.listen(port, '127.0.0.1', () => resolve(made));
    });

  let server: Server | undefined = await listen(0);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const cut = (how: 'fin' | 'rst' = 'rst'): void => {
    for (const pair of [...open]) {
      cuts += 1;
      end(pair, how);
    }
  };
  const stop = async (): Promise<void> => {
    const closing = server;
    server = undefined;
    cut();
    await new Promise<void>((resolve) =>
      closing === undefined ? resolve() : closing.close(() => resolve()),
    );
  };
  const proxy: CuttingProxy = {
    port,
    onAccept: () => undefined,
    get connections() {
      return connections;
    },
    get cuts() {
      return cuts;
    },
    cut,
    freeze: (frozen) => {
      isFrozen = frozen;
    },
    refuse: async (isRefusing) => {
      if (isRefusing) await stop();
      else server ??= await listen(port);
    },
    [Symbol.asyncDispose]: stop,
  };
  return proxy;
}
