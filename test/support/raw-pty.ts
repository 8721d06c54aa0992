/** A program in a PTY whose bytes are kept as bytes, for tests that count every one of them. */
import { closeSync, constants, openSync } from 'node:fs';
import { spawn } from '@lydell/node-pty';
import { BIN, cleanEnvironment } from './cli.js';
import { eventually } from './eventually.js';

export interface RawPty extends Disposable {
  readonly pid: number;
  bytes(): Buffer;
  readonly length: number;
  write(data: string | Buffer): void;
  /** Calls for every chunk that comes. */
  onData(listener: (chunk: Buffer) => void): void;
  ended(): Promise<number>;
}

export function rawPty(
  program: string,
  args: readonly string[],
  {
    env = {},
    keep = true,
  }: { readonly env?: Record<string, string>; readonly keep?: boolean } = {},
): RawPty {
  const pty = spawn(program, [...args], {
    cols: 80,
    rows: 24,
    env: { TERM: 'xterm-256color', LANG: 'C.UTF-8', ...cleanEnvironment(env) },
    cwd: '/',
    // Nothing is decoded.
    encoding: null,
  });
  // Without a hand on its other end the last output of a program that ends is lost now and then.
  const held = openSync(String(Reflect.get(pty, '_pty')), constants.O_RDWR | constants.O_NOCTTY);
  const chunks: Buffer[] = [];
  const listeners: ((chunk: Buffer) => void)[] = [];
  let length = 0;
  let code: number | undefined;
  pty.onData((data) => {
    const chunk = Buffer.from(data);
    length += chunk.length;
    if (keep) chunks.push(chunk);
    for (const listener of listeners) listener(chunk);
  });
  pty.onExit(({ exitCode, signal }) => {
    closeSync(held);
    code = signal !== undefined && signal > 0 ? 128 + signal : exitCode;
  });
  return {
    pid: pty.pid,
    bytes: () => Buffer.concat(chunks),
    get length() {
      return length;
    },
    write: (data) => pty.write(data.toString()),
    onData: (listener) => listeners.push(listener),
    ended: async () => {
      while (code === undefined) await eventually(() => code !== undefined).catch(() => undefined);
      return code;
    },
    [Symbol.dispose]: () => {
      if (code === undefined) pty.kill('SIGKILL');
    },
  };
}

export function rawAttach(
  args: readonly string[],
  env: Record<string, string>,
  keep = true,
): RawPty {
  return rawPty(process.execPath, [BIN, 'attach', ...args], { env, keep });
}
