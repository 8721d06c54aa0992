/** Rows as aligned columns, for lists that people read. */

/** Pads every cell but the last of its row; cells are escaped before they come here. */
export function columns(rows: readonly (readonly string[])[], gap = 2): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) {
      widths[index] = Math.max(widths[index] ?? 0, visibleLength(cell));
    }
  }
  return rows.map((row) => padRow(row, widths, gap).trimEnd()).join('\n');
}

function padRow(row: readonly string[], widths: readonly number[], gap: number): string {
  return row
    .map((cell, index) => {
      if (index === row.length - 1) return cell;
      return cell + ' '.repeat((widths[index] ?? 0) - visibleLength(cell) + gap);
    })
    .join('');
}

/** Colour takes no room. */
function visibleLength(cell: string): number {
  return cell.replace(/\u001b\[[0-9;]*m/g, '').length;
}
