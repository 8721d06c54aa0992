/** A terminal without a window: takes a program's output, and says as escape sequences what a person would see. */
import { SerializeAddon } from '@xterm/addon-serialize';
import { Terminal } from '@xterm/headless';
import type { Size } from './sizes.js';

export interface Emulator extends Disposable {
  /** Resolves when it is all on the screen. */
  write(bytes: Uint8Array): Promise<void>;
  resize(size: Size): void;
  /** The screen, with so many lines of what has scrolled away above it. */
  serialize(historyLines: number): Promise<string>;
}

/** Lines kept above the screen. */
export const HISTORY_LINES = 1_000;

export function createEmulator({ cols, rows }: Size): Emulator {
  const terminal = new Terminal({
    cols,
    rows,
    allowProposedApi: true,
    scrollback: HISTORY_LINES,
    logLevel: 'off',
  });
  const serializer = new SerializeAddon();
  terminal.loadAddon(serializer);
  let title = '';
  terminal.onTitleChange((text) => {
    title = text;
  });
  return {
    write: (bytes) => new Promise((resolve) => terminal.write(bytes, resolve)),
    resize: (size) => terminal.resize(size.cols, size.rows),
    serialize: async (historyLines) => {
      const scrollback = Math.min(historyLines, HISTORY_LINES);
      const isAlternate = terminal.buffer.active.type === 'alternate';
      // The serializer leaves the cursor's style on when it goes over to the other screen, whose first cells would then have it.
      const screen = serializer.serialize({ scrollback }).replace(OTHER_SCREEN, '\x1b[m$&');
      return `${RESET}${titleText(title)}${screen}${restOf(terminal, isAlternate)}`;
    },
    [Symbol.dispose]: () => terminal.dispose(),
  };
}

const OTHER_SCREEN = '\x1b[?1049h\x1b[H';

/** Whatever the client's terminal showed before: modes off, cleared, cursor home. */
const RESET = '\x1b[!p\x1b[?1049l\x1b[r\x1b[m\x1b[H\x1b[2J';

function titleText(title: string): string {
  // It came from a program: no byte of it may end the sequence early and begin another.
  const plain = title.replace(/[\x00-\x1f\x7f-\x9f]/g, '');
  return plain === '' ? '' : `\x1b]2;${plain}\x1b\\`;
}

/** What the serializer leaves out; the emulator keeps it where its own parts look for it. */
function restOf(terminal: Terminal, isAlternate: boolean): string {
  const core = part(terminal, '_core');
  const buffer = part(core, 'buffer');
  const top = numberOf(buffer, 'scrollTop') ?? 0;
  const bottom = numberOf(buffer, 'scrollBottom') ?? terminal.rows - 1;
  let text = '';
  if (top !== 0 || bottom !== terminal.rows - 1) {
    // Setting the region moves the cursor: it is put back by its absolute place, whatever the origin mode.
    const { cursorX, cursorY } = terminal.buffer.active;
    const isOrigin = terminal.modes.originMode;
    const row = isOrigin ? cursorY - top : cursorY;
    text += `\x1b[${top + 1};${bottom + 1}r\x1b[${row + 1};${cursorX + 1}H`;
  }
  const encoding = Reflect.get(part(core, 'coreMouseService') ?? {}, 'activeEncoding');
  if (encoding === 'SGR') text += '\x1b[?1006h';
  if (encoding === 'SGR_PIXELS') text += '\x1b[?1016h';
  if (Reflect.get(part(core, 'coreService') ?? {}, 'isCursorHidden') === true) text += '\x1b[?25l';
  void isAlternate;
  return text;
}

function part(whole: object | undefined, name: string): object | undefined {
  const value: unknown = whole === undefined ? undefined : Reflect.get(whole, name);
  return typeof value === 'object' && value !== null ? value : undefined;
}

function numberOf(whole: object | undefined, name: string): number | undefined {
  const value: unknown = whole === undefined ? undefined : Reflect.get(whole, name);
  return typeof value === 'number' ? value : undefined;
}
