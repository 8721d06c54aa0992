/** A bare HTTP client of the broker: every answer as it came. */
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import type { Principal } from '../../../../src/protocol/principal.js';
import { tokenOf } from './replica.js';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers as any client would
  readonly json: any;
}

export interface Asked {
  readonly as?: Partial<Principal> & { readonly sub: string };
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const agent = new Agent({ keepAlive: true, maxSockets: 512 });

export const ALICE = { sub: 'usr_alice' };

export function ask(url: string, method: string, path: string, asked: Asked = {}): Promise<Reply> {
  const body = asked.body === undefined ? undefined : JSON.stringify(asked.body);
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const outgoing = request(
      {
        hostname,
        port,
        // As it is: URL parsers fold `%2E%2E`.
        path,
        method,
        agent,
        headers: {
          Authorization: `Bearer ${tokenOf(asked.as ?? ALICE)}`,
          ...(body !== undefined && {
            'Content-Type': 'application/json',
            'Content-Length': Buffer.byteLength(body),
          }),
          ...asked.headers,
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const { statusCode: status = 0, headers } = incoming;
          resolve({ status, headers, json: text === '' ? undefined : JSON.parse(text) });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

const SESSIONS = '/v1/sandbox/sessions';

export function ensure(url: string, thread: string, asked: Asked = {}): Promise<Reply> {
  const body = { thread_id: thread, mode: 'ensure', ...Object(asked.body) };
  return ask(url, 'POST', SESSIONS, { ...asked, body });
}

/** The same through one of the three faces; the two ids, whatever the face calls them. */
export async function ensureBy(
  face: 'mvp' | 'full' | 'thread',
  url: string,
  thread: string,
  asked: Asked = {},
): Promise<Reply & { readonly sessionId: string; readonly sandboxId: string }> {
  const reply =
    face === 'thread'
      ? await ask(url, 'POST', `/threads/${thread}/sandbox`, { ...asked, body: {} })
      : await ensure(url, thread, {
          ...asked,
          body: face === 'full' ? { scope: { type: 'thread', id: thread } } : {},
        });
  const { json } = reply;
  return {
    ...reply,
    sessionId: json?.session_id,
    sandboxId: face === 'thread' ? json?.sandbox_id : json?.sandbox?.id,
  };
}

/** As a patient client does: 423 is waited for as long as it says. */
export async function untilStarted<T extends Reply>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    const reply = await call();
    if (reply.status !== 423) return reply;
    const seconds = Number(reply.headers['retry-after'] ?? Number.NaN);
    if (!(seconds >= 1)) throw new Error('423 without Retry-After');
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}
