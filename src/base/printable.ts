/** Any value as plain JSON data of bounded size: never throws, and shows of a `Secret` what its `toJSON` does. */

export interface PrintOptions {
  /** Whether errors show their stack. */
  readonly stacks: boolean;
}

export type Printable = string | number | boolean | null | readonly Printable[] | PrintableFields;

export interface PrintableFields {
  readonly [key: string]: Printable;
}

/** More than this of anything is for a debugger, not for a log. */
export const PRINT_BOUNDS = { depth: 6, entries: 64, values: 512, characters: 4_096 } as const;

export function toPrintable(value: unknown, options: PrintOptions): Printable {
  return new Printer(options).print(value, []);
}

/** As above for what becomes part of an object: never a bare value. */
export function toPrintableFields(fields: object, options: PrintOptions): PrintableFields {
  const printed = toPrintable(fields, options);
  return isFields(printed) ? printed : { fields: printed };
}

class Printer {
  readonly #options: PrintOptions;
  #valuesLeft: number = PRINT_BOUNDS.values;

  constructor(options: PrintOptions) {
    this.#options = options;
  }

  /** `ancestors` are the objects this value is inside of: meeting one again is a cycle. */
  print(value: unknown, ancestors: readonly object[]): Printable {
    this.#valuesLeft -= 1;
    switch (typeof value) {
      case 'string':
        return cutText(value);
      case 'number':
        return Number.isFinite(value) ? value : String(value);
      case 'boolean':
        return value;
      case 'undefined':
        return null;
      case 'object':
        return value === null ? null : this.#printObject(value, ancestors);
      case 'bigint':
      case 'symbol':
        return cutText(String(value));
      case 'function':
        return '[function]';
    }
  }

  #printObject(value: object, ancestors: readonly object[]): Printable {
    if (ancestors.includes(value)) return '[circular]';
    if (ancestors.length >= PRINT_BOUNDS.depth) return '[too deep]';
    const inside = [...ancestors, value];
    try {
      if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
      if (value instanceof Error) return this.#printEntries(this.#errorEntries(value), inside);
      if (Array.isArray(value)) return this.#printList(value, inside);
      if ('toJSON' in value && typeof value.toJSON === 'function') {
        return this.print(value.toJSON(), inside);
      }
      return this.#printEntries(Object.entries(value), inside);
    } catch {
      // A getter, a `toJSON` or a proxy that throws is no reason to lose the rest of the line.
      return '[unreadable]';
    }
  }

  /** Only what is known to be for logs: an error from elsewhere may carry a whole request, headers included. */
  #errorEntries(error: Error): [string, unknown][] {
    const entries: [string, unknown][] = [
      ['name', error.name],
      ['message', error.message],
    ];
    for (const key of ['code', 'internal']) {
      const own = Object.getOwnPropertyDescriptor(error, key)?.value;
      if (typeof own === 'string' || typeof own === 'number') entries.push([key, own]);
    }
    if (this.#options.stacks) entries.push(['stack', error.stack]);
    if (error.cause !== undefined) entries.push(['cause', error.cause]);
    if (error instanceof AggregateError) entries.push(['errors', error.errors]);
    return entries;
  }

  #printEntries(entries: readonly [string, unknown][], inside: readonly object[]): Printable {
    const printed: [string, Printable][] = [];
    for (const [key, value] of entries) {
      if (printed.length >= PRINT_BOUNDS.entries || this.#valuesLeft <= 0) {
        printed.push(['[cut]', entries.length - printed.length]);
        break;
      }
      if (value !== undefined) printed.push([cutText(key), this.print(value, inside)]);
    }
    return Object.fromEntries(printed);
  }

  #printList(list: readonly unknown[], inside: readonly object[]): Printable {
    const printed: Printable[] = [];
    for (const value of list) {
      if (printed.length >= PRINT_BOUNDS.entries || this.#valuesLeft <= 0) {
        printed.push(`[${list.length - printed.length} more]`);
        break;
      }
      printed.push(this.print(value, inside));
    }
    return printed;
  }
}

export function cutText(text: string): string {
  const left = text.length - PRINT_BOUNDS.characters;
  return left > 0 ? `${text.slice(0, PRINT_BOUNDS.characters)}[${left} more]` : text;
}

function isFields(printed: Printable): printed is PrintableFields {
  return typeof printed === 'object' && printed !== null && !Array.isArray(printed);
}
