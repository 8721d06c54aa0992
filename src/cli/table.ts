/** Lists for people: a line of headings, columns that line up, and on a terminal never wider than it is. */
import { columns } from './columns.js';
import type { Context } from './context.js';

const GAP = 2;
/** Narrower than this a cell says nothing any more. */
const LEAST_CELL = 8;

/** Cells are escaped before they come here, and have no colour: what is cut is what people see. */
export function table(
  { io, style }: Pick<Context, 'io' | 'style'>,
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const all = [headings, ...rows];
  const widths = headings.map((_, at) => Math.max(...all.map((row) => (row[at] ?? '').length)));
  const fitting = io.out.isTerminal ? narrowed(widths, io.out.columns) : widths;
  const [head = [], ...body] = all.map((row) =>
    row.map((cell, at) => cut(cell, fitting[at] ?? cell.length)),
  );
  return columns([head.map((word) => style.dim(word)), ...body], GAP);
}

/** Takes from the widest column until all fit, or none can give any more. */
function narrowed(widths: readonly number[], room: number): readonly number[] {
  const fitting = [...widths];
  let excess = fitting.reduce((sum, width) => sum + width + GAP, -GAP) - room;
  while (excess > 0) {
    const widest = fitting.indexOf(Math.max(...fitting));
    const width = fitting[widest] ?? 0;
    if (width <= LEAST_CELL) break;
    fitting[widest] = width - 1;
    excess -= 1;
  }
  return fitting;
}

function cut(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, width - 1)}…`;
}
