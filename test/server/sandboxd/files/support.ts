/** A sandbox whose files are asked for over plain HTTP, with paths sent exactly as they are written. */
import { request } from 'node:http';
import { join } from 'node:path';
import { type Served, type ServedOptions, serveSandbox } from '../support/sandboxd.js';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  /** `error.code`, where it is one. */
  readonly code: string | undefined;
}

export interface FilesServed extends AsyncDisposable {
  readonly served: Served;
  readonly workspace: string;
  /** `path` begins with `/files` or `/v1`. */
  ask(method: string, path: string, options?: AskOptions): Promise<RawAnswer>;
}

export interface AskOptions {
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

export async function serveFiles(options: ServedOptions = {}): Promise<FilesServed> {
  const served = await serveSandbox(options);
  const token = served.token();
  return {
    served,
    workspace: join(served.folder, 'workspace'),
    ask: (method, path, asked) =>
      askFiles(served.port, `/s/${served.id}${path}`, token, method, asked),
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}

export function askFiles(
  port: number,
  path: string,
  token: string,
  method: string,
  { headers = {}, body }: AskOptions = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        headers: { authorization: `Bearer ${token}`, ...headers },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const bytes = Buffer.concat(chunks);
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            body: bytes,
            code: codeOf(bytes),
          });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

function codeOf(body: Buffer): string | undefined {
  try {
    return JSON.parse(body.toString())?.error?.code;
  } catch {
    return undefined;
  }
}
