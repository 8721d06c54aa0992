/** Makes text that came from outside safe to print: nothing in it can move the cursor, hide words or reorder them. */

/**
 * Control and format characters (the bidi marks and overrides, zero-width ones, soft hyphen, tags, byte order mark), line
 * and paragraph separators, halves of surrogate pairs, and letters that are drawn as nothing.
 */
export const UNSAFE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\u034f|\u115f|\u1160|\u17b4|\u17b5|\u3164|\uffa0/gu;

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
