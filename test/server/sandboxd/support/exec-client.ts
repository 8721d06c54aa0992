/** A WebSocket client of `/v1/exec/ws` that knows the frames from the contract's page alone. */
import WebSocket from 'ws';
import { eventually } from '../../../support/eventually.js';
import type { Frame } from './bare-client.js';

export type Output = 'stdout' | 'stderr';

export interface ExecClient extends Disposable {
  readonly socket: WebSocket;
  readonly frames: Frame[];
  /** What came of each output, in order; a gap or a repetition throws. */
  text(stream?: Output): string;
  bytes(stream?: Output): Buffer;
  /** The next byte of each output. */
  readonly next: Record<Output, number>;
  /** The highest input offset that was acknowledged. */
  readonly inputAcked: number;
  send(frame: object): void;
  stdin(offset: number | undefined, data: Uint8Array | string): void;
  frame(type: string): Promise<Frame>;
  /** Forgets what was seen, for another command on the same connection. */
  restart(): void;
  readonly isClosed: boolean;
}

export interface ExecClientOptions {
  readonly binary?: boolean;
  readonly acks?: boolean;
  /** Where each output goes on. */
  readonly from?: Record<Output, number>;
  /** Keeps no bytes, only counts them. */
  readonly onData?: (stream: Output, data: Buffer) => void;
}

const ACK_BYTES = 64 * 1024;

export async function connectExec(
  url: string,
  token: string,
  options: ExecClientOptions = {},
): Promise<ExecClient> {
  const { binary = true, acks = true } = options;
  const socket = new WebSocket(url, binary ? ['ailsd.v1.binary'] : [], {
    headers: { authorization: `Bearer ${token}` },
    perMessageDeflate: false,
  });
  const frames: Frame[] = [];
  let kept: Record<Output, Buffer[]> = { stdout: [], stderr: [] };
  const next = { stdout: 0, stderr: 0, ...options.from };
  const acked = { ...next };
  let inputAcked = 0;
  let failure: Error | undefined;
  let isClosed = false;
  const take = (stream: Output, offset: number, data: Buffer): void => {
    if (offset !== next[stream])
      failure ??= new Error(`${stream} at ${offset}, not ${next[stream]}`);
    if (frames.some(({ type }) => type === 'exit')) failure ??= new Error('bytes after the exit');
    next[stream] = offset + data.length;
    if (options.onData === undefined) kept[stream].push(data);
    else options.onData(stream, data);
    if (!acks || next[stream] - acked[stream] < ACK_BYTES) return;
    acked[stream] = next[stream];
    if (socket.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ type: 'ack', stream, offset: next[stream] }));
  };
  socket.on('message', (message: Buffer, isBinary) => {
    if (isBinary) {
      const stream = message[0] === 0x11 ? 'stdout' : 'stderr';
      take(stream, Number(message.readBigUInt64BE(1)), message.subarray(9));
      return;
    }
    const frame = JSON.parse(message.toString());
    if (frame.type === 'stdout' || frame.type === 'stderr')
      take(frame.type, frame.offset, Buffer.from(frame.data, frame.encoding ?? 'utf8'));
    else if (frame.type === 'ack') inputAcked = frame.offset;
    else frames.push(frame);
  });
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('error', () => {
    isClosed = true;
  });
  const bytes = (stream: Output = 'stdout'): Buffer => {
    if (failure !== undefined) throw failure;
    return Buffer.concat(kept[stream]);
  };
  const client: ExecClient = {
    socket,
    frames,
    next,
    bytes,
    get inputAcked() {
      return inputAcked;
    },
    get isClosed() {
      return isClosed;
    },
    text: (stream) => bytes(stream).toString('utf8'),
    send: (frame) => socket.send(JSON.stringify(frame)),
    stdin: (offset, data) => {
      const body = Buffer.from(data);
      if (!binary) {
        const encoded = { encoding: 'base64', data: body.toString('base64') };
        socket.send(JSON.stringify({ type: 'stdin', offset, ...encoded }));
        return;
      }
      const head = Buffer.alloc(9, 0xff);
      head[0] = 0x10;
      if (offset !== undefined) head.writeBigUInt64BE(BigInt(offset), 1);
      socket.send(Buffer.concat([head, body]));
    },
    frame: async (type) => {
      const found = () => frames.find((frame) => frame.type === type);
      const deadline = performance.now() + 60_000;
      await new Promise<void>((resolve, reject) => {
        const look = (): void => {
          if (found() !== undefined || isClosed) stop(resolve);
          else if (performance.now() > deadline)
            stop(() => reject(new Error(`no ${type} in ${JSON.stringify(frames).slice(0, 2000)}`)));
        };
        const timer = setInterval(look, 250);
        const stop = (settle: () => void): void => {
          clearInterval(timer);
          socket.off('message', look).off('close', look);
          settle();
        };
        socket.on('message', look).on('close', look);
        look();
      });
      if (failure !== undefined) throw failure;
      const frame = found();
      if (frame === undefined) throw new Error(`closed before ${type}: ${JSON.stringify(frames)}`);
      return frame;
    },
    restart: () => {
      frames.length = 0;
      kept = { stdout: [], stderr: [] };
      next.stdout = next.stderr = acked.stdout = acked.stderr = 0;
    },
    [Symbol.dispose]: () => socket.terminate(),
  };
  await eventually(
    () => socket.readyState === WebSocket.OPEN || isClosed,
    () => 'never connected',
  );
  return client;
}
