/** Which symbolic links may travel: those that mean the same on every machine and stay inside the tree by their spelling. */
import { PATH_MAX_CHARS } from '../../protocol/frame-fields.js';
import type { Problem } from './entry.js';

/** `undefined` for a link that may be synced; `path` is the link's own. Nothing is ever followed to find out. */
export function linkProblem(path: string, target: string): Problem | undefined {
  if (target === '' || target.length > PATH_MAX_CHARS || !isPlainText(target)) {
    return { code: 'LINK_NOT_PORTABLE', message: 'the link has a target that cannot be sent' };
  }
  if (target.includes('\\')) {
    return { code: 'LINK_NOT_PORTABLE', message: 'the link has a backslash in its target' };
  }
  if (target.startsWith('/') || /^[A-Za-z]:/.test(target)) {
    return { code: 'LINK_OUTSIDE', message: 'the link is absolute, and so leaves the folder' };
  }
  // Folders between the root and the link: so many steps up are still inside.
  let depth = path.split('/').length - 1;
  for (const step of target.split('/')) {
    if (step === '' || step === '.') continue;
    depth += step === '..' ? -1 : 1;
    if (depth < 0) return { code: 'LINK_OUTSIDE', message: 'the link leaves the folder' };
  }
  return undefined;
}

function isPlainText(text: string): boolean {
  // Half a surrogate pair becomes something else on the way.
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text);
}
