/** The members of a value that may be anything: none, if it is not an object. */
export type Fields = Readonly<Record<string, unknown>>;

export function fieldsIn(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value));
}
