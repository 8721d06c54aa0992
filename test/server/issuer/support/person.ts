/** Somebody with a browser that has no scripts: follows pages by plain HTTP, keeps cookies, fills in forms. */
import { PASSWORD } from './world.js';

export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export class Person {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #cookies = new Map<string, string>();

  /** `base`: the replica whose pages are visited. */
  constructor(base: string, headers: Readonly<Record<string, string>> = {}) {
    this.#base = base;
    this.#headers = headers;
  }

  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Seen> {
    return this.#send(path, { headers });
  }

  /** On `/device` a decision leads to its result. */
  async post(
    path: string,
    fields: Fields,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Seen> {
    const body = new URLSearchParams();
    const entries = isList(fields) ? fields : Object.entries(fields);
    for (const [name, value] of entries) body.append(name, value);
    const seen = await this.#send(path, { method: 'POST', body, headers });
    const next = seen.headers.get('location');
    return path === '/device' && seen.status === 303 && next !== null ? this.get(next) : seen;
  }

  async signIn(name = 'ada', password = PASSWORD): Promise<Seen> {
    const page = await this.get('/sign-in');
    return this.post('/sign-in', { xsrf: xsrfOf(page), next: '/device', login: name, password });
  }

  /** The page with the code to compare. */
  async compare(userCode: string): Promise<Seen> {
    const page = await this.get('/device');
    return this.post('/device', { xsrf: xsrfOf(page), user_code: userCode });
  }

  async decide(userCode: string, decision: 'approve' | 'deny', choice: Choice = {}): Promise<Seen> {
    const page = await this.compare(userCode);
    if (page.status !== 200) return page;
    const ticked = choice.scopes ?? scopesOf(page);
    return this.post('/device', [
      ['xsrf', xsrfOf(page)],
      ['user_code', userCode],
      ['decision', decision],
      ['ttl', choice.ttl ?? '30d'],
      ['threads', choice.threads ?? ''],
      ...ticked.map((scope): [string, string] => ['scope', scope]),
    ]);
  }

  async #send(
    path: string,
    init: RequestInit & { headers: Readonly<Record<string, string>> },
  ): Promise<Seen> {
    const response = await fetch(new URL(path, this.#base), {
      ...init,
      redirect: 'manual',
      headers: { ...this.#headers, ...init.headers, cookie: this.cookie },
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const at = pair.indexOf('=');
      const value = pair.slice(at + 1);
      if (value === '') this.#cookies.delete(pair.slice(0, at));
      else this.#cookies.set(pair.slice(0, at), value);
    }
    return { status: response.status, headers: response.headers, text: await response.text() };
  }
}

type List = readonly (readonly [string, string])[];
type Fields = List | Readonly<Record<string, string>>;

function isList(fields: Fields): fields is List {
  return Array.isArray(fields);
}

export interface Choice {
  readonly scopes?: readonly string[];
  readonly ttl?: string;
  readonly threads?: string;
}

export function xsrfOf({ text, status }: Seen): string {
  const found = /name="xsrf" value="([^"]+)"/.exec(text)?.[1];
  if (found === undefined) throw new Error(`no form on this page (${status}): ${text.slice(-600)}`);
  return found;
}

/** The boxes a page shows. */
export function scopesOf({ text }: Seen): readonly string[] {
  return [...text.matchAll(/name="scope" value="([^"]+)"/g)].map((match) => match[1] ?? '');
}
