/** Turns unknown values into known ones by a schema: an outcome for any input whatever, and never an exception. */
import * as z from 'zod/mini';
import { AilsdError, type ErrorCode } from './errors.js';

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: AilsdError };

export type Schema = z.core.$ZodType;
export type Output<S extends Schema> = z.output<S>;

/** What a caller sent. A bad one is the caller's fault: 400, naming the first bad field. */
export function parseRequest<S extends z.core.$ZodType>(
  schema: S,
  value: unknown,
): Parsed<z.output<S>> {
  return parse(schema, value, 'INVALID_REQUEST', 'the request: ');
}

/** What a server answered. A bad one means that the two disagree about the protocol. */
export function parseAnswer<S extends z.core.$ZodType>(
  schema: S,
  value: unknown,
): Parsed<z.output<S>> {
  return parse(schema, value, 'PROTOCOL_MISMATCH', "the server's answer: ");
}

/** The same for any other source; `subject` opens the message. The words never repeat the value: it may be a token. */
export function parse<S extends z.core.$ZodType>(
  schema: S,
  value: unknown,
  code: ErrorCode,
  subject: string,
): Parsed<z.output<S>> {
  // Zod throws where the value does (a getter, a proxy), and where too many issues overflow its stack.
  let issue: z.core.$ZodIssue | undefined;
  let verb = 'must be';
  try {
    const result = z.safeParse(schema, value, { error: says });
    if (result.success) return { ok: true, value: result.data };
    issue = firstIssue(result.error.issues);
    if (isAbsent(value, issue?.path ?? [])) verb = 'is missing: it must be';
  } catch {
    // Whatever it is, it is not what the schema asks for.
  }
  const field = fieldOf(issue?.path ?? []);
  const message = `${subject}${field} ${verb} ${issue?.message ?? ANOTHER_FORM}`;
  return { ok: false, error: new AilsdError(code, message, { details: { field } }) };
}

/** What a value must be, where its schema does not say so itself. */
function says(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return TYPES[issue.expected] ?? ANOTHER_FORM;
    case 'invalid_value':
      return oneOf(issue.values);
    case 'invalid_union':
      return 'options' in issue && Array.isArray(issue.options)
        ? oneOf(issue.options)
        : ANOTHER_FORM;
    case 'too_small':
      return `at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`;
    case 'too_big':
      return `at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
    default:
      return ANOTHER_FORM;
  }
}

const ANOTHER_FORM = 'of another form';

const TYPES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  int: 'a whole number',
  never: 'left out',
  number: 'a number',
  object: 'an object',
  record: 'an object',
  string: 'text',
  undefined: 'left out',
};

const UNITS: Readonly<Record<string, string>> = { array: ' items', string: ' characters' };

function oneOf(values: readonly unknown[]): string {
  return values.length === 1 ? String(values[0]) : `one of ${values.join(', ')}`;
}

/** The issue to report: of several forms that all failed, the one in which the value came furthest. */
function firstIssue(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue | undefined {
  const [first] = issues;
  if (first?.code !== 'invalid_union') return first;
  let furthest: z.core.$ZodIssue = first;
  for (const form of first.errors) {
    const inner = firstIssue(form);
    if (inner === undefined) continue;
    const path = [...first.path, ...inner.path];
    if (path.length > furthest.path.length) furthest = { ...inner, path };
  }
  return furthest;
}

function isAbsent(value: unknown, path: readonly PropertyKey[]): boolean {
  let inner = value;
  for (const key of path) {
    if (typeof inner !== 'object' || inner === null) return false;
    inner = Reflect.get(inner, key);
  }
  return inner === undefined;
}

/** A dotted path. It ends before the first key that the sender chose and that is not a plain word. */
function fieldOf(path: readonly PropertyKey[]): string {
  const end = path.findIndex((key) => !PLAIN_KEY.test(String(key)));
  return path.slice(0, end < 0 ? MOST_KEYS : Math.min(end, MOST_KEYS)).join('.') || WHOLE;
}

/** Stands for the value as a whole, when it is not even an object. */
const WHOLE = 'body';
const PLAIN_KEY = /^[A-Za-z0-9_-]{1,64}$/;
const MOST_KEYS = 8;
