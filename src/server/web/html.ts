/** HTML as a value: what is put into a template is text and is escaped, unless it is HTML itself. */

/** Only `html` makes one, so that no text becomes markup by accident. */
export class Html {
  readonly #markup: string;

  private constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }

  static template(parts: TemplateStringsArray, ...values: readonly Fragment[]): Html {
    return new Html(String.raw({ raw: parts }, ...values.map(render)));
  }
}

/** `false` and `undefined` leave nothing: for parts that are there only sometimes. */
export type Fragment = string | number | Html | false | undefined | readonly Fragment[];

export const html = Html.template;

function render(value: Fragment): string {
  if (value instanceof Html) return value.toString();
  if (value === false || value === undefined) return '';
  if (typeof value === 'string') return escapeHtml(value);
  if (typeof value === 'number') return String(value);
  return value.map(render).join('');
}

/**
 * Safe between tags and in quoted attributes. Control and bidi characters are shown by their number: a name that
 * came from outside must not turn the text around it.
 */
export function escapeHtml(text: string): string {
  return text
    .replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`)
    .replace(
      /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
}
