/** Words on the last row while the shell itself cannot be heard. What stood there is drawn again from the shell when they go. */
import type { Size } from '../../client/shell/shell-words.js';
import { escapeText } from '../escape.js';

export interface StatusSurface {
  write(text: string): void;
  readonly size: Size;
  /** False while it would disturb: inside of a sequence, or with the cursor put aside, which is also how we find back. */
  readonly mayDraw: boolean;
}

export class StatusLine {
  readonly #surface: StatusSurface;
  #isShown = false;

  constructor(surface: StatusSurface) {
    this.#surface = surface;
  }

  get isShown(): boolean {
    return this.#isShown;
  }

  show(text: string): void {
    if (!this.#isShown && !this.#surface.mayDraw) return;
    const { cols } = this.#surface.size;
    const words = escapeText(` ${text}`).slice(0, cols - 1);
    this.#draw(`\x1b[0;7m${words.padEnd(cols - 1)}\x1b[0m`);
    this.#isShown = true;
  }

  /** Leaves an empty row; true when one was left, which is then to be drawn again. */
  hide(): boolean {
    if (!this.#isShown) return false;
    this.#isShown = false;
    this.#draw('\x1b[0m\x1b[2K');
    return true;
  }

  /** The whole screen was drawn anew, and the line with it. */
  forget(): void {
    this.#isShown = false;
  }

  /** The cursor is put aside with its style and brought back; the row is counted from the screen's top. */
  #draw(what: string): void {
    this.#surface.write(`\x1b7\x1b[?6l\x1b[${this.#surface.size.rows};1H${what}\x1b8`);
  }
}
