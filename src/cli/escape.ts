/** Makes text that came from outside safe to print: nothing in it can move the cursor, hide words or reorder them. */

/**
 * Control characters of both sets, line and paragraph separators, the bidi embeddings, overrides, isolates and marks,
 * zero-width characters that hide differences, the byte order mark, tags, and halves of surrogate pairs.
 */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

/** One line of it, with every unsafe character written as its escape. */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, escapeOne);
}

/** The same, but its own line breaks and tabs stay: for messages that are meant to have lines. */
export function escapeLines(text: string): string {
  return text.replace(UNSAFE, (character) =>
    character === '\n' || character === '\t' ? character : escapeOne(character),
  );
}

function escapeOne(character: string): string {
  const named = NAMED[character];
  if (named !== undefined) return named;
  const code = character.codePointAt(0) ?? 0;
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`;
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, '0')}`;
  return `\\u{${code.toString(16)}}`;
}

const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
