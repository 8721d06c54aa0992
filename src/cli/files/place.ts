/** Where a file is: on this machine, in a thread's sandbox (`THREAD:PATH`), or a pipe (`-`). */
import { AilsdError } from '../../protocol/errors.js';
import { isWorkspacePath } from '../../protocol/shapes/files.js';

export type Place =
  | { readonly kind: 'pipe' }
  | { readonly kind: 'local'; readonly path: string }
  | RemotePlace;

export interface RemotePlace {
  readonly kind: 'remote';
  /** `undefined`: the thread that is set. */
  readonly thread: string | undefined;
  /** Empty for the workspace itself. */
  readonly path: string;
  /** It was written as a folder: what is copied there goes into it. */
  readonly isFolder: boolean;
}

/** The first colon decides, unless a slash comes before it (`./a:b`) or it follows a drive letter (`C:\a`). */
export function parsePlace(text: string): Place {
  if (text === '-') return { kind: 'pipe' };
  const at = text.indexOf(':');
  const isLocal = at === -1 || /[/\\]/.test(text.slice(0, at)) || /^[A-Za-z]:([/\\]|$)/.test(text);
  return isLocal ? { kind: 'local', path: text } : remote(text.slice(0, at), text.slice(at + 1));
}

/** Where only a sandbox can be meant, the thread and its colon may be left out. */
export function parseRemote(text: string | undefined): RemotePlace {
  const at = text?.indexOf(':') ?? -1;
  if (text === undefined || at === -1) return remote('', text ?? '');
  return remote(text.slice(0, at), text.slice(at + 1));
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Of a path in a workspace and a name below it. */
export function below(path: string, name: string): string {
  return path === '' ? name : `${path}/${name}`;
}

/** A slash at either end, and `.`, are how people write folders; inside they have no place. */
function remote(thread: string, written: string): RemotePlace {
  const path = written.replace(/^(\.?\/)+/, '').replace(/\/+$/, '');
  const plain = path === '.' ? '' : path;
  if (!isWorkspacePath(plain))
    throw new AilsdError('USAGE', 'that is not a path inside the workspace', {
      details: { field: 'path' },
      hint: 'write it from the workspace on, without . and ..: THREAD:src/main.ts',
    });
  const isFolder = plain === '' || written.endsWith('/');
  return { kind: 'remote', thread: thread === '' ? undefined : thread, path: plain, isFolder };
}
