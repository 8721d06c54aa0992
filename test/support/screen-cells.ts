/** A terminal's screen cell by cell: characters, widths, colours, styles, the cursor. For saying that two pictures are one. */
import type { Terminal } from '@xterm/headless';

export function screenCells(terminal: Terminal): string[] {
  const { active } = terminal.buffer;
  const rows: string[] = [];
  for (let row = 0; row < terminal.rows; row += 1) {
    const line = active.getLine(active.baseY + row);
    let text = '';
    let style = '';
    for (let column = 0; column < terminal.cols; column += 1) {
      const cell = line?.getCell(column);
      if (cell === undefined || cell.getWidth() === 0) continue;
      const flags = [
        cell.isBold(),
        cell.isDim(),
        cell.isItalic(),
        cell.isUnderline(),
        cell.isInverse(),
        cell.isInvisible(),
        cell.isStrikethrough(),
      ].map(Number);
      const colours = [
        cell.getFgColorMode(),
        cell.getFgColor(),
        cell.getBgColorMode(),
        cell.getBgColor(),
      ];
      const now = `${flags.join('')}/${colours.join(',')}`;
      if (now !== style) text += `{${now}}`;
      style = now;
      text += cell.getChars() || ' ';
    }
    rows.push(text);
  }
  rows.push(`cursor ${active.cursorX},${active.cursorY} ${active.type}`);
  return rows;
}
