/** What a server's document says under a name, as text that is safe to print. */
import { type Document, isDocument } from '../../client/sessions/call.js';
import { columns } from '../columns.js';
import { escapeText } from '../escape.js';
import { timeText } from '../login/time-text.js';
import type { Style } from '../style.js';

/** Absent things as nothing, lists as words, times to the second. */
export function shown(document: Document, key: string): string {
  return shownValue(document[key]);
}

export function shownValue(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map(shownValue).join(' ');
  if (isDocument(value)) return escapeText(JSON.stringify(value));
  const text = String(value);
  return TIME.test(text) ? timeText(Date.parse(text)) : escapeText(text);
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

/** Its fields one a line, those that say nothing left out. */
export function fieldLines(
  rows: readonly (readonly [name: string, value: string])[],
  style: Style,
): string {
  const said = rows.filter(([, value]) => value !== '');
  return columns(said.map(([name, value]) => [style.dim(`  ${name}`), value]));
}
