/** What the file system said, as an error a caller can act on. */
import { errorCode } from '../../../base/error-code.js';
import { AilsdError } from '../../../protocol/errors.js';
import { badPath, leadsOut } from './spelling.js';

export function toFileError(error: unknown): unknown {
  if (error instanceof AilsdError) return error;
  switch (errorCode(error)) {
    case 'ENOENT':
      return notThere(error);
    case 'ENOTDIR':
      return badPath('a part of the path is no folder');
    case 'EISDIR':
    case 'ENOTEMPTY':
    case 'EEXIST':
      return badPath('something else is in its place');
    case 'ENAMETOOLONG':
      return badPath('a name in the path is too long');
    case 'ELOOP':
      return leadsOut();
    case 'EACCES':
    case 'EPERM':
      return new AilsdError('FORBIDDEN', 'the sandbox does not allow it', { cause: error });
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new AilsdError('STORAGE_FULL', 'there is no room left for it', { cause: error });
    default:
      return error;
  }
}

export function notThere(cause?: unknown): AilsdError {
  return new AilsdError('NOT_FOUND', 'there is nothing at this path', { cause });
}
