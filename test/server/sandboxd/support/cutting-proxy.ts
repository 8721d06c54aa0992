/** A line that is cut: passes bytes both ways, and after so many of them is gone, in the midst of whatever it was. */
import { connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy extends Disposable {
  readonly port: number;
  readonly cuts: number;
  /** From here on nothing is cut. */
  heal(): void;
}

/** `nextCut` gives the bytes after which the next connection ends. Cuts alternate between a reset and a plain end. */
export async function cuttingProxy(target: number, nextCut: () => number): Promise<CuttingProxy> {
  let cuts = 0;
  let isHealed = false;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    let left = isHealed ? Number.POSITIVE_INFINITY : nextCut();
    const cut = (): void => {
      cuts += 1;
      if (cuts % 2 === 0) {
        client.resetAndDestroy();
        upstream.resetAndDestroy();
      } else {
        client.destroy();
        upstream.destroy();
      }
    };
    const pass = (from: Socket, to: Socket): void => {
      open.add(from);
      from.setNoDelay(true);
      from.on('error', () => undefined);
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
      from.on('data', (chunk) => {
        if (left === 0) return;
        const part = chunk.subarray(0, Math.min(left, chunk.length));
        left -= part.length;
        if (!to.write(part)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
        if (left === 0) setImmediate(cut);
      });
    };
    pass(client, upstream);
    pass(upstream, client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get cuts() {
      return cuts;
    },
    heal: () => {
      isHealed = true;
    },
    [Symbol.dispose]: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
