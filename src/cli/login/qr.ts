/** An address as a QR code of half blocks, two rows a line. */
import { encode } from 'uqr';

export interface QrPicture {
  readonly lines: readonly string[];
  readonly columns: number;
}

/** In colour it is black on white whatever the terminal's own are; without, it relies on light text on a dark ground. */
export function drawQr(address: string, inColour: boolean): QrPicture {
  const { data, size } = encode(address, { ecc: 'L', border: QUIET_ZONE });
  const isDark = (row: number, column: number): boolean => data[row]?.[column] === true;
  const lines: string[] = [];
  for (let row = 0; row < size; row += 2) {
    let line = '';
    for (let column = 0; column < size; column += 1) {
      line += block(isDark(row, column), isDark(row + 1, column), inColour);
    }
    lines.push(inColour ? `${BLACK_ON_WHITE}${line}${RESET}` : line);
  }
  return { lines, columns: size };
}

/** Fewer light modules around it than the norm's four are enough for phones, and save two lines. */
const QUIET_ZONE = 2;
const BLACK_ON_WHITE = '\u001b[30;107m';
const RESET = '\u001b[0m';

/** The ink is the dark modules in colour, and the light ones without. */
function block(upperIsDark: boolean, lowerIsDark: boolean, inColour: boolean): string {
  const upper = upperIsDark === inColour;
  const lower = lowerIsDark === inColour;
  if (upper && lower) return '█';
  if (upper) return '▀';
  return lower ? '▄' : ' ';
}
