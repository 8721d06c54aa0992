/** Each caller gets errors by the names of the protocol it speaks: the domain says them in the MVP's. */
import { AilsdError, codeForFace, type Face } from '../../../protocol/errors.js';

export async function inFace<T>(face: Face, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw toFace(thrown, face);
  }
}

function toFace(thrown: unknown, face: Face): unknown {
  if (!(thrown instanceof AilsdError)) return thrown;
  const code = codeForFace(thrown.code, face);
  if (code === thrown.code) return thrown;
  const { details, internal, hint } = thrown;
  return new AilsdError(code, thrown.message, {
    cause: thrown,
    details,
    hint,
    ...(internal !== undefined && { internal }),
  });
}
