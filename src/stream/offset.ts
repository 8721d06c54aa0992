/** An offset counts the bytes of a stream since it began. 2^53 of them are 28 years at 10 MB/s; then it is over, loudly. */
export function checkOffset(value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${value} is not an offset in a stream`);
}
