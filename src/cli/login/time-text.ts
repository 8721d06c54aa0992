/** A point in time for people: to the second, in UTC like everywhere else. */
export function timeText(ms: number): string {
  return new Date(ms)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replace('T', ' ');
}
