/** A WebSocket client that knows the frames from the contract's page alone, and nothing of our SDK. */
import WebSocket from 'ws';
import { eventually } from '../../../support/eventually.js';

// biome-ignore lint/suspicious/noExplicitAny: a foreign client looks into frames as it finds them
export type Frame = any;

export interface BareClient extends Disposable {
  readonly socket: WebSocket;
  readonly frames: Frame[];
  /** All output so far, by offset, whatever came twice kept twice. */
  readonly chunks: { offset: number; data: Buffer }[];
  output(): string;
  bytes(): Buffer;
  send(frame: object): void;
  stdin(offset: number | undefined, data: Uint8Array | string): void;
  type(text: string): void;
  until(isIt: (frame: Frame) => boolean): Promise<Frame>;
  frame(type: string): Promise<Frame>;
  shows(text: string): Promise<void>;
  closed(): Promise<{ code: number; reason: string }>;
  ack(): void;
}

export interface BareOptions {
  readonly binary?: boolean;
  readonly headers?: Record<string, string>;
  /** Acknowledges all it gets; on unless it says otherwise. */
  readonly acks?: boolean;
  readonly onFrame?: (frame: Frame) => void;
}

export async function connect(url: string, options: BareOptions = {}): Promise<BareClient> {
  const client = bareClient(url, options);
  await new Promise<void>((resolve, reject) => {
    client.socket.once('open', resolve);
    client.socket.once('error', reject);
  });
  return client;
}

export function bareClient(url: string, options: BareOptions = {}): BareClient {
  const { binary = true, headers = {}, acks = true } = options;
  const socket = new WebSocket(url, binary ? ['ailsd.v1.binary'] : [], {
    headers,
    perMessageDeflate: false,
  });
  const frames: Frame[] = [];
  const chunks: { offset: number; data: Buffer }[] = [];
  let ended: { code: number; reason: string } | undefined;
  let seen = 0;
  let acked = 0;
  const takeOutput = (offset: number, data: Buffer): void => {
    chunks.push({ offset, data });
    seen = offset + data.length;
    if (acks && seen - acked >= 64 * 1024) ack();
  };
  const ack = (): void => {
    acked = seen;
    if (socket.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ type: 'ack', offset: seen }));
  };
  socket.on('message', (message: Buffer, isBinary) => {
    if (isBinary) {
      takeOutput(Number(message.readBigUInt64BE(1)), message.subarray(9));
      options.onFrame?.({ type: 'stdout' });
      return;
    }
    const frame = JSON.parse(message.toString());
    if (frame.type === 'stdout')
      takeOutput(
        frame.offset,
        frame.encoding === 'base64' ? Buffer.from(frame.data, 'base64') : Buffer.from(frame.data),
      );
    else frames.push(frame);
    options.onFrame?.(frame);
  });
  socket.on('close', (code, reason) => {
    ended = { code, reason: reason.toString() };
  });
  socket.on('error', () => undefined);
  const bytes = (): Buffer => Buffer.concat(chunks.map(({ data }) => data));
  const client: BareClient = {
    socket,
    frames,
    chunks,
    bytes,
    output: () => bytes().toString('utf8'),
    send: (frame) => socket.send(JSON.stringify(frame)),
    stdin: (offset, data) => {
      const body = Buffer.from(data);
      if (!binary) {
        socket.send(
          JSON.stringify({
            type: 'stdin',
            offset,
            encoding: 'base64',
            data: body.toString('base64'),
          }),
        );
        return;
      }
      const head = Buffer.alloc(9, 0xff);
      head[0] = 0x10;
      if (offset !== undefined) head.writeBigUInt64BE(BigInt(offset), 1);
      socket.send(Buffer.concat([head, body]));
    },
    type: (text) => client.stdin(undefined, text),
    until: async (isIt) => {
      await eventually(
        () => frames.some(isIt) || ended !== undefined,
        () => `no such frame in ${JSON.stringify(frames).slice(0, 4000)}`,
      );
      const found = frames.find(isIt);
      if (found === undefined)
        throw new Error(
          `closed ${JSON.stringify(ended)}: ${JSON.stringify(frames).slice(0, 2000)}`,
        );
      return found;
    },
    frame: (type) => client.until((frame) => frame.type === type),
    shows: (text) =>
      eventually(
        () => client.output().includes(text),
        () =>
          `never showed ${text}: ${client.output().slice(-2000)} ${JSON.stringify(frames).slice(-2000)}`,
      ),
    closed: async () => {
      await eventually(
        () => ended !== undefined,
        () => `not closed: ${JSON.stringify(frames).slice(0, 2000)}`,
      );
      return ended ?? { code: 0, reason: '' };
    },
    ack,
    [Symbol.dispose]: () => socket.terminate(),
  };
  return client;
}

/** Connected, known, and with a shell. */
export async function attach(
  url: string,
  token: string,
  start: object = {},
  options: BareOptions = {},
): Promise<BareClient> {
  const client = await connect(url, options);
  client.send({ type: 'auth', token });
  client.send({ type: 'start', ...start });
  await client.frame('ready');
  return client;
}
