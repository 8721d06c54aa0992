/** Keys that are ours: `~` at the beginning of a line, then a letter. Everything else goes to the shell as it is. No I/O. */

export type KeyEvent =
  | { readonly kind: 'input'; readonly bytes: Uint8Array }
  | { readonly kind: 'command'; readonly command: KeyCommand };

export type KeyCommand = 'detach' | 'help' | 'redraw' | 'take' | 'suspend';

const ENTER = 0x0d;
const NEWLINE = 0x0a;
const COMMANDS: ReadonlyMap<number, KeyCommand> = new Map([
  [code('.'), 'detach'],
  [code('?'), 'help'],
  [code('R'), 'redraw'],
  [code('T'), 'take'],
  [0x1a, 'suspend'],
]);
/** Around pasted text, where the program asked for it: a paste that holds `~.` after a newline must not leave. */
const PASTE_BEGIN = [0x1b, 0x5b, 0x32, 0x30, 0x30, 0x7e];
const PASTE_END = [0x1b, 0x5b, 0x32, 0x30, 0x31, 0x7e];

export class EscapeKeys {
  readonly #escape: number | undefined;
  /** The very first key may be one of ours, as after Enter. */
  #isLineStart = true;
  /** The escape character was typed and is kept back until it is known what it means. */
  #isPending = false;
  #isPasting = false;
  /** How much of a paste's mark has gone by. */
  #marked = 0;

  /** `undefined` switches them off. */
  constructor(character: string | undefined) {
    this.#escape = character === undefined ? undefined : code(character);
  }

  take(bytes: Uint8Array): KeyEvent[] {
    if (this.#escape === undefined) return [{ kind: 'input', bytes }];
    const events: KeyEvent[] = [];
    // What goes to the shell of this chunk is a view of it, unless a key was kept back before it.
    let from = 0;
    for (const [at, byte] of bytes.entries()) {
      if (this.#isPending) {
        this.#isPending = false;
        const command = COMMANDS.get(byte);
        if (command !== undefined) {
          events.push({ kind: 'command', command });
          from = at + 1;
          this.#isLineStart = true;
          continue;
        }
        // Twice is once; before any other key it is itself.
        if (byte !== this.#escape) events.push(input(Uint8Array.of(this.#escape)));
        from = at;
        this.#isLineStart = false;
      } else if (byte === this.#escape && this.#isLineStart && !this.#isPasting) {
        if (at > from) events.push(input(bytes.subarray(from, at)));
        from = at + 1;
        this.#isPending = true;
        continue;
      }
      this.#follow(byte);
    }
    if (from < bytes.length) events.push(input(bytes.subarray(from)));
    return events;
  }

  #follow(byte: number): void {
    this.#isLineStart = byte === ENTER || byte === NEWLINE;
    const mark = this.#isPasting ? PASTE_END : PASTE_BEGIN;
    this.#marked = byte === mark[this.#marked] ? this.#marked + 1 : byte === mark[0] ? 1 : 0;
    if (this.#marked < mark.length) return;
    this.#isPasting = !this.#isPasting;
    this.#marked = 0;
  }
}

/** Printed by `~?`. */
export function escapeHelp(character: string): readonly string[] {
  return [
    'Keys of ailsd, after Enter:',
    `  ${character}.   leave; the shell goes on`,
    `  ${character}R   draw the screen again`,
    `  ${character}T   take the keyboard from whoever has it`,
    `  ${character}^Z  suspend ailsd`,
    `  ${character}?   this help`,
    `  ${character}${character}   the character itself`,
  ];
}

function input(bytes: Uint8Array): KeyEvent {
  return { kind: 'input', bytes };
}

function code(character: string): number {
  return character.charCodeAt(0);
}
