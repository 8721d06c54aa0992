/** Imports oidc-provider without its notice that this Node is older than it likes: every grant was tried on it. */
import type * as Library from 'oidc-provider';

export type OidcLibrary = typeof Library;

let loading: Promise<OidcLibrary> | undefined;

export function loadOidcLibrary(): Promise<OidcLibrary> {
  loading ??= importQuietly();
  return loading;
}

async function importQuietly(): Promise<OidcLibrary> {
  const { warn } = console;
  console.warn = (...words: unknown[]) => {
    if (!String(words[0]).includes('oidc-provider WARNING: Unsupported runtime')) warn(...words);
  };
  try {
    return await import('oidc-provider');
  } finally {
    console.warn = warn;
  }
}
