/** Who an account is, for people: the name they know, and the id that tells it from others. */
import { escapeText } from '../escape.js';
import type { Style } from '../style.js';

export function accountText(
  account: string,
  name: string | null | undefined,
  style: Style,
): string {
  const id = escapeText(account);
  if (name === null || name === undefined || name === account) return style.bold(id);
  return `${style.bold(escapeText(name))} (${id})`;
}
