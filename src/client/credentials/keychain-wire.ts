/** What passes between us and the child that talks to the keychain: one JSON object a line, both ways. */
import type { Keychain } from './keychain.js';

export interface KeychainRequest {
  readonly id: number;
  readonly call: keyof Keychain;
  readonly given: readonly string[];
}

export type KeychainAnswer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

/** Far above what we keep; past it the other side is not what we think it is. */
export const MOST_LINE_CHARACTERS = 8 * 1024 * 1024;

export function toLine(message: KeychainRequest | KeychainAnswer): string {
  return `${JSON.stringify(message)}\n`;
}

/** Cuts a stream of text into lines; throws when one is too long. */
export class Lines {
  #rest = '';

  push(text: string): readonly string[] {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > MOST_LINE_CHARACTERS) throw new Error('a line is too long');
    return lines;
  }
}

export function parseRequest(line: string): KeychainRequest | undefined {
  const value = parseObject(line);
  if (value === undefined || !('call' in value) || !('given' in value)) return undefined;
  const { id, call, given } = value;
  if (!isCall(call) || !Array.isArray(given)) return undefined;
  return { id, call, given: given.map(String) };
}

export function parseAnswer(line: string): KeychainAnswer | undefined {
  const value = parseObject(line);
  if (value === undefined) return undefined;
  if ('error' in value) return { id: value.id, error: String(value.error) };
  return { id: value.id, value: 'value' in value ? value.value : undefined };
}

const CALLS: readonly unknown[] = [
  'getPassword',
  'setPassword',
  'deletePassword',
  'findCredentials',
  'findPassword',
] satisfies (keyof Keychain)[];

function isCall(value: unknown): value is keyof Keychain {
  return CALLS.includes(value);
}

/** The parser's own words are dropped: they repeat the text, and that holds tokens. */
function parseObject(line: string): { readonly id: number } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || !('id' in value)) return undefined;
    const { id } = value;
    return typeof id === 'number' ? { ...value, id } : undefined;
  } catch {
    return undefined;
  }
}
