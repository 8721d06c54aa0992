/** The settings there are: what each is for, what it may hold, and which sources may give it. */
import { resolve } from 'node:path';
import { AilsdError } from '../../protocol/errors.js';
import { isThreadId } from '../../protocol/ids.js';

export interface Setting {
  /** For `config list`, help and `help environment`. */
  readonly summary: string;
  readonly variable: string;
  /** A repository is somebody else's text: only what cannot send credentials elsewhere may come from one. */
  readonly projectMaySet: boolean;
  readonly fallback?: string;
  readonly choices?: readonly string[];
  /** A yes-or-no variable that means one of the values. */
  readonly flagVariable?: { readonly name: string; readonly means: string };
  /** The value as it is used, or a sentence on what it should have been. */
  parse(value: string): { readonly value: string } | { readonly expected: string };
}

export const SETTINGS = {
  url: {
    summary: 'the server to talk to',
    variable: 'AILSD_URL',
    projectMaySet: true,
    parse: parseServerUrl,
  },
  thread: {
    summary: 'the thread meant when a command names none',
    variable: 'AILSD_THREAD',
    projectMaySet: true,
    parse: (value) =>
      isThreadId(value) ? { value } : { expected: '1 to 128 of A-Z a-z 0-9 . _ : -' },
  },
  output: {
    ...choice('how results are printed', 'AILSD_OUTPUT', ['text', 'json', 'jsonl'], 'text'),
    flagVariable: { name: 'AILSD_JSON', means: 'json' },
  },
  credential_store: choice(
    'where logins are kept',
    'AILSD_CREDENTIAL_STORE',
    ['auto', 'keyring', 'file', 'memory'],
    'auto',
  ),
  ca_file: {
    summary: 'PEM certificates to trust besides the usual ones',
    variable: 'AILSD_CA_FILE',
    // A repository that could add an authority could stand between its reader and any server.
    projectMaySet: false,
    parse: parsePath,
  },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

export const SETTING_NAMES = Object.keys(SETTINGS).filter(isSettingName);

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}

export function setting(name: SettingName): Setting {
  return SETTINGS[name];
}

/** The parsed value, or an error that says what was wrong with it and where it came from. */
export function parseSetting(name: SettingName, value: unknown, from: string): string {
  const parsed = typeof value === 'string' ? setting(name).parse(value) : { expected: 'a text' };
  if ('value' in parsed) return parsed.value;
  throw new AilsdError('CONFIG_INVALID', `${name} from ${from} is not usable${shown(value)}`, {
    hint: `expected ${parsed.expected}`,
    details: { setting: name, source: from },
  });
}

const MOST_SHOWN = 80;

/** The value, unless it is long or may hold a password. */
function shown(value: unknown): string {
  if (typeof value !== 'string' || value.includes('@') || value.length > MOST_SHOWN) return '';
  return `: ${value}`;
}

function choice(
  summary: string,
  variable: string,
  choices: readonly string[],
  fallback: string,
): Setting {
  return {
    summary,
    variable,
    projectMaySet: false,
    fallback,
    choices,
    parse: (value) =>
      choices.includes(value) ? { value } : { expected: `one of ${choices.join(', ')}` },
  };
}

const MOST_URL_CHARACTERS = 2_048;

function parseServerUrl(text: string): ReturnType<Setting['parse']> {
  const expected =
    'an https:// address (http:// is fine for this machine) without user name, query or fragment';
  // A bare `?` or `#` leaves no trace in what the parser gives.
  if (text.length > MOST_URL_CHARACTERS || /[?#]/.test(text)) return { expected };
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return { expected };
  }
  const plain = url.username === '' && url.password === '';
  const secure =
    url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
  return plain && secure ? { value: url.href.replace(/\/+$/, '') } : { expected };
}

/** Tokens travel in the clear over http: only to this very machine. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host);
}

/** A relative one is meant from here: kept in a profile, it would mean something else elsewhere. */
function parsePath(value: string): ReturnType<Setting['parse']> {
  try {
    return { value: resolve(value) };
  } catch {
    return { expected: 'an absolute path, since the folder we are in is gone' };
  }
}
