/** The settings there are: what each is for, what it may hold, and which sources may give it. */
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
  output: choice('how results are printed', 'AILSD_OUTPUT', ['text', 'json', 'jsonl'], 'text'),
  credential_store: choice(
    'where logins are kept',
    'AILSD_CREDENTIAL_STORE',
    ['auto', 'keyring', 'file', 'memory'],
    'auto',
  ),
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
export function parseSetting(name: SettingName, value: string, from: string): string {
  const parsed = setting(name).parse(value);
  if ('value' in parsed) return parsed.value;
  throw new AilsdError('CONFIG_INVALID', `${name} from ${from} is not usable: ${value}`, {
    hint: `expected ${parsed.expected}`,
    details: { setting: name, source: from },
  });
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

function parseServerUrl(text: string): ReturnType<Setting['parse']> {
  const expected =
    'an https:// address (http:// is fine for this machine) without user name, query or fragment';
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return { expected };
  }
  const plain = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  const secure =
    url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
  return plain && secure ? { value: url.href.replace(/\/+$/, '') } : { expected };
}

/** Tokens travel in the clear over http: only to this very machine. */
function isLoopback(host: string): boolean {
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host === '[::1]' ||
    /^127(\.\d+){3}$/.test(host)
  );
}
