/** Which paths are refused by their spelling alone, before anything on the disk is looked at. */
import { AilsdError } from '../../../protocol/errors.js';
import { isWorkspacePath } from '../../../protocol/shapes/files.js';

/** The name of one thing in a folder: its bytes as Latin-1 text, so that names which are not UTF-8 are names too. */
export type Name = string;

/** How often a path may have been encoded too much and still be seen through. */
const MOST_DECODINGS = 3;

/** The steps of a path; none for the workspace itself. INVALID_REQUEST where some reader of paths would see a way out in it. */
export function stepsOf(path: string): readonly Name[] {
  let seen = path;
  for (let round = 0; round <= MOST_DECODINGS; round += 1) {
    if (!isWorkspacePath(seen) || seen.split('/').some((step) => STEP_UP.test(step)))
      throw badPath('the path leads out of the workspace, or is not written as one inside it');
    const next = decoded(seen);
    if (next === seen) break;
    seen = next;
  }
  return path === '' ? [] : path.split('/').map(toName);
}

/** `..;` is a step up to some servers, and to nobody a name that they would choose. */
const STEP_UP = /^\.{1,2}(;|$)/;

export function toName(text: string): Name {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export function toBytes(name: Name): Buffer {
  return Buffer.from(name, 'latin1');
}

export function badPath(message: string): AilsdError {
  return new AilsdError('INVALID_REQUEST', message, { details: { field: 'path' } });
}

/** A link, or what came in its place, leads out. The same words whatever is there. */
export function leadsOut(): AilsdError {
  return new AilsdError('FORBIDDEN', 'a link on the path leads out of the workspace', {
    details: { field: 'path' },
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
