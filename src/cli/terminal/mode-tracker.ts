/** Follows which modes a program has set on the terminal, so that exactly these can be undone. Reads bytes, changes none. */

/** Private modes (`CSI ? n h`) that outlive a program badly: mouse, focus, paste, keys, wrap, cursor. */
const PRIVATE_OFF = new Set([
  1, 5, 6, 9, 66, 67, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 1034, 2004, 2026,
  2031, 2048,
]);
/** Modes that are on by nature. */
const PRIVATE_ON = new Set([7, 8, 25]);
const ALTERNATE = new Set([47, 1047, 1049]);
const SOFTLY_RESET = new Set([1, 6, 7, 25, 66]);

const ESC = 0x1b;
/** Longer than any sequence that is followed; a longer one is let go. */
const SEQUENCE_MAX_BYTES = 256;

export class ModeTracker {
  readonly #modes = new Map<number, boolean>();
  #ansiModes = new Set<string>();
  #alternate: number | undefined;
  #keypad = false;
  #cursorStyle = false;
  #scrollRegion = false;
  #charset = false;
  #keyProtocol = 0;
  #otherKeys = false;
  #titlesPushed = 0;
  #colours = new Set<string>();
  #savedCursor = false;
  #hasStyle = false;
  /** What came of a sequence whose rest is in the next chunk. */
  #rest = '';
  /** Inside of a string (a title, a picture): nothing but its end counts. */
  #inString = false;

  /** Whether the program has put the cursor aside and will want it back. */
  get hasSavedCursor(): boolean {
    return this.#savedCursor;
  }

  get isAlternate(): boolean {
    return this.#alternate !== undefined;
  }

  /** Whether a sequence has begun that is not over: anything written now would become part of it. */
  get isInSequence(): boolean {
    return this.#inString || this.#rest !== '';
  }

  take(bytes: Uint8Array): void {
    // Nearly all output has no escape at all, and looking for one byte costs next to nothing.
    if (this.#rest === '' && !this.#inString && !bytes.includes(ESC)) return;
    const text = this.#rest + latin1(bytes);
    this.#rest = '';
    this.#scan(text);
  }

  /** What undoes it all: the screen first, because some terminals keep modes by screen. */
  repair(): string {
    const parts: string[] = [];
    if (this.#modes.get(2026) === true) parts.push('\x1b[?2026l');
    if (this.#alternate !== undefined) parts.push(`\x1b[?${this.#alternate}l`);
    for (const [mode, isSet] of this.#modes) {
      if (mode !== 2026) parts.push(`\x1b[?${mode}${isSet ? 'l' : 'h'}`);
    }
    for (const mode of this.#ansiModes) parts.push(`\x1b[${mode}l`);
    if (this.#keypad) parts.push('\x1b>');
    if (this.#keyProtocol > 0) parts.push(`\x1b[<${this.#keyProtocol}u`);
    if (this.#otherKeys) parts.push('\x1b[>4m');
    if (this.#scrollRegion) parts.push('\x1b7\x1b[r\x1b8');
    if (this.#charset) parts.push('\x1b(B\x0f');
    if (this.#hasStyle) parts.push('\x1b[0m');
    if (this.#cursorStyle) parts.push('\x1b[0 q');
    for (const colour of this.#colours) parts.push(`\x1b]${colour}\x1b\\`);
    for (let left = this.#titlesPushed; left > 0; left -= 1) parts.push('\x1b[23;0t');
    return parts.join('');
  }

  #scan(text: string): void {
    let at = 0;
    while (at < text.length) {
      if (this.#inString) {
        STRING_END.lastIndex = at;
        const end = STRING_END.exec(text);
        if (end === null) return;
        this.#inString = false;
        // An escape ends it and begins something else, which may be no more than the proper end.
        at = end[0] === '\x1b' ? end.index : end.index + 1;
        continue;
      }
      const begin = text.indexOf('\x1b', at);
      if (begin === -1) return;
      const taken = this.#sequence(text, begin);
      if (taken === 'more') {
        if (text.length - begin <= SEQUENCE_MAX_BYTES) this.#rest = text.slice(begin);
        return;
      }
      at = taken;
    }
  }

  /** Takes the sequence that begins here, and says where the text goes on. */
  #sequence(text: string, begin: number): number | 'more' {
    const kind = text[begin + 1];
    if (kind === undefined) return 'more';
    if (kind === '[') return this.#csi(text, begin);
    if (kind === ']' || kind === 'P' || kind === '_' || kind === '^' || kind === 'X') {
      if (kind === ']' && !this.#osc(text, begin)) return 'more';
      this.#inString = true;
      return begin + 2;
    }
    if (kind === '(' || kind === ')') {
      const set = text[begin + 2];
      if (set === undefined) return 'more';
      this.#charset = this.#charset || set !== 'B';
      return begin + 3;
    }
    if (kind === '=') this.#keypad = true;
    else if (kind === '>') this.#keypad = false;
    else if (kind === '7') this.#savedCursor = true;
    else if (kind === '8') this.#savedCursor = false;
    else if (kind === 'c') this.#forget();
    return begin + (kind === '\x1b' ? 1 : 2);
  }

  #csi(text: string, begin: number): number | 'more' {
    CSI.lastIndex = begin;
    const found = CSI.exec(text);
    if (found === null) {
      const isOpen = /^\x1b\[[0-?]*[ -/]*$/.test(text.slice(begin, begin + SEQUENCE_MAX_BYTES));
      return isOpen ? 'more' : begin + 2;
    }
    const [whole, mark = '', parameters = '', between = '', final = ''] = found;
    this.#take(mark, parameters, between, final);
    return begin + whole.length;
  }

  #take(mark: string, parameters: string, between: string, final: string): void {
    switch (`${mark}${between}${final}`) {
      case '?h':
      case '?l':
        for (const mode of parameters.split(';')) this.#privateMode(Number(mode), final === 'h');
        break;
      case 'h':
      case 'l':
        for (const mode of parameters.split(';')) {
          if (final === 'h' && (mode === '4' || mode === '20')) this.#ansiModes.add(mode);
          else this.#ansiModes.delete(mode);
        }
        break;
      case 'm':
        this.#hasStyle = parameters !== '' && parameters !== '0';
        break;
      case 'r':
        this.#scrollRegion = parameters !== '';
        break;
      case 's':
        this.#savedCursor = true;
        break;
      case 'u':
        this.#savedCursor = false;
        break;
      case ' q':
        this.#cursorStyle = parameters !== '' && parameters !== '0';
        break;
      case '!p':
        this.#soften();
        break;
      case '>u':
        this.#keyProtocol += 1;
        break;
      case '<u':
        this.#keyProtocol = Math.max(0, this.#keyProtocol - (Number(parameters) || 1));
        break;
      case '>m':
        this.#otherKeys = /^4;[1-9]/.test(parameters);
        break;
      case 't':
        if (/^22(;|$)/.test(parameters)) this.#titlesPushed += 1;
        if (/^23(;|$)/.test(parameters)) this.#titlesPushed = Math.max(0, this.#titlesPushed - 1);
        break;
    }
  }

  #privateMode(mode: number, isSet: boolean): void {
    if (ALTERNATE.has(mode)) this.#alternate = isSet ? mode : undefined;
    const isNatural = PRIVATE_ON.has(mode) ? isSet : PRIVATE_OFF.has(mode) ? !isSet : true;
    if (isNatural) this.#modes.delete(mode);
    else this.#modes.set(mode, isSet);
  }

  /** A colour, perhaps; false while its number is not known yet. */
  #osc(text: string, begin: number): boolean {
    const found = /^\x1b\](\d{0,4})(.?)/s.exec(text.slice(begin, begin + 8));
    if (found === null || found[2] === '') return false;
    const number = found[1] ?? '';
    const undo = COLOURS[number];
    if (undo !== undefined) this.#colours.add(undo);
    return true;
  }

  /** The soft reset of a terminal: mouse, paste and focus stay as they are, and so does the screen. */
  #soften(): void {
    const alternate = this.#alternate;
    const kept = [...this.#modes].filter(([mode]) => !SOFTLY_RESET.has(mode));
    this.#forget();
    this.#alternate = alternate;
    for (const [mode, isSet] of kept) this.#modes.set(mode, isSet);
  }

  #forget(): void {
    this.#modes.clear();
    this.#ansiModes = new Set();
    this.#alternate = undefined;
    this.#keypad = false;
    this.#scrollRegion = false;
    this.#charset = false;
    this.#cursorStyle = false;
    this.#savedCursor = false;
    this.#hasStyle = false;
  }
}

const STRING_END = /[\x07\x18\x1a\x1b]/g;
const CSI = /\x1b\[([<-?]?)([0-9;:]*)([ -/]*)([@-~])/y;

/** What sets a colour, and what gives the terminal's own back. */
const COLOURS: Readonly<Record<string, string>> = { 4: '104', 10: '110', 11: '111', 12: '112' };

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
