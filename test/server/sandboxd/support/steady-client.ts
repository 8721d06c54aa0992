/** A bare client that comes back after every cut, from the offset it has; it knows when a byte is missing or comes twice. */
import { type BareClient, bareClient } from './bare-client.js';

export interface SteadyOptions {
  readonly url: string;
  readonly token: () => string;
  readonly start: object;
  readonly clientId: string;
  readonly onOutput: (bytes: Buffer) => void;
  readonly binary?: boolean;
}

export interface SteadyClient {
  /** Sends it, and again after a cut until it was acknowledged. */
  type(bytes: Uint8Array): void;
  readonly received: number;
  readonly acknowledged: number;
  readonly connections: number;
  readonly snapshots: number;
  /** Whether it holds a line on which it knows its shell. */
  readonly isReady: boolean;
  /** Resolves with the exit frame. */
  readonly exit: Promise<unknown>;
  stop(): void;
}

export function steadyClient(options: SteadyOptions): SteadyClient {
  const { url, token, start, clientId, onOutput } = options;
  let shellId: string | undefined;
  let received = 0;
  let typed = Buffer.alloc(0);
  let acknowledged = 0;
  let connections = 0;
  let snapshots = 0;
  let current: BareClient | undefined;
  let isReady = false;
  let isStopped = false;
  let done: (exit: unknown) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const exit = new Promise<unknown>((resolve, reject) => {
    done = resolve;
    fail = reject;
  });
  const open = (): void => {
    if (isStopped) return;
    connections += 1;
    isReady = false;
    const client: BareClient = bareClient(url, {
      binary: options.binary ?? true,
      acks: false,
      onFrame: (frame) => {
        if (client !== current) return;
        if (frame.type === 'ready') {
          shellId = frame.shell_id;
          isReady = true;
          acknowledged = Math.max(acknowledged, frame.input_offset);
          if (frame.input_offset < typed.length)
            client.stdin(frame.input_offset, typed.subarray(frame.input_offset));
        } else if (frame.type === 'ack') acknowledged = Math.max(acknowledged, frame.offset);
        else if (frame.type === 'snapshot') {
          snapshots += 1;
          received = frame.offset;
        } else if (frame.type === 'exit') {
          if (frame.offset !== received)
            fail(new Error(`exit at ${frame.offset}, had ${received}`));
          done(frame);
          isStopped = true;
        } else if (frame.type === 'error') fail(new Error(JSON.stringify(frame)));
        for (const { offset, data } of client.chunks.splice(0)) {
          if (offset !== received) fail(new Error(`got ${offset}, wanted ${received}`));
          received += data.length;
          onOutput(data);
        }
        if (received - acked > 64 * 1024) {
          acked = received;
          client.ack();
        }
      },
    });
    current = client;
    client.socket.on('open', () => {
      client.send({ type: 'auth', token: token() });
      client.send({
        type: 'start',
        client_id: clientId,
        input_offset: acknowledged,
        ...start,
        ...(shellId === undefined ? {} : { shell_id: shellId, offset: received }),
      });
    });
    client.socket.on('close', (code, reason) => {
      if (code === 1008) fail(new Error(`1008 ${reason}`));
      if (client === current) setTimeout(open, 2);
    });
  };
  let acked = 0;
  open();
  return {
    type: (bytes) => {
      const at = typed.length;
      typed = Buffer.concat([typed, bytes]);
      if (isReady && current?.socket.readyState === 1) current.stdin(at, bytes);
    },
    get received() {
      return received;
    },
    get acknowledged() {
      return acknowledged;
    },
    get connections() {
      return connections;
    },
    get snapshots() {
      return snapshots;
    },
    get isReady() {
      return isReady && current?.socket.readyState === 1;
    },
    exit,
    stop: () => {
      isStopped = true;
      current?.socket.terminate();
    },
  };
}
