/** The bytes every stream story sends: the same on every run, and different enough that a slip of one shows. */
export function sourceBytes(from: number, to: number): Uint8Array {
  if (to > SOURCE.length) throw new RangeError('the story is longer than its source');
  return SOURCE.subarray(from, to);
}

/** A linear congruential generator: noise without a period that a ring's capacity could hide in. */
const SOURCE = (() => {
  const bytes = new Uint8Array(1 << 20);
  let state = 1;
  for (let at = 0; at < bytes.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
})();
