/** Which part of a flood a screen need not look at, because nothing of it is left to be seen afterwards. No I/O. */

export interface Skip {
  /** 0: all of it must be looked at. */
  readonly bytes: number;
  /** What the screen is to be given in their place. */
  readonly instead: string;
}

/**
 * How much of these bytes can be passed over. Plain text and colours, if so many lines follow that all of it has scrolled away: what is
 * left to see is exact. Noise (somebody prints a file that is no text): nobody can tell what it ought to look like, and it is slow to
 * look at; of that only the end counts. Any other sequence may have changed anything, so it is looked at.
 * `linesKept`: lines on the screen and above it.
 */
export function skippable(bytes: Uint8Array, linesKept: number): Skip {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (text.length > NOISE_KEPT_BYTES * 2 && isNoise(text))
    return { bytes: text.length - NOISE_KEPT_BYTES, instead: CANCEL + PLAIN };
  const end = beginningOfLast(text, linesKept);
  if (end <= 0) return NOTHING;
  const region = text.subarray(0, end);
  if (region.includes(SHIFT_OUT) || region.includes(SHIFT_IN) || hasC1(region)) return NOTHING;
  if (!region.includes(ESCAPE)) return { bytes: end, instead: '' };
  const plain = region.toString('latin1');
  if (UNKNOWN_SEQUENCE.test(plain)) return NOTHING;
  // Which colours are on is known again only after they were all turned off.
  const last = Math.max(afterLast(plain, '\x1b[0m'), afterLast(plain, '\x1b[m'));
  return last === 0 ? NOTHING : { bytes: last, instead: PLAIN };
}

const NOTHING: Skip = { bytes: 0, instead: '' };
/** Ends whatever sequence was begun. */
const CANCEL = '\x18';
const PLAIN = '\x1b[0m';

const NOISE_KEPT_BYTES = 64 * 1024;
const NOISE_SAMPLE_BYTES = 16 * 1024;
/** Of the characters of a sample that no encoding explains. */
const NOISE_SHARE = 0.05;

function isNoise(text: Buffer): boolean {
  const sample = text.toString('utf8', 0, NOISE_SAMPLE_BYTES);
  let strange = 0;
  for (const character of sample) if (character === '\ufffd') strange += 1;
  return strange > sample.length * NOISE_SHARE;
}

const ESCAPE = 0x1b;
const SHIFT_OUT = 0x0e;
const SHIFT_IN = 0x0f;
const LINE_FEED = 0x0a;
/** Anything but colours and the clearing of a line. */
const UNKNOWN_SEQUENCE = /\x1b(?!\[[\d;:]*[mK])/;

/** Where the last so many lines begin; 0 when there are fewer. */
function beginningOfLast(text: Buffer, lines: number): number {
  let at = text.length;
  for (let count = 0; count <= lines; count++) {
    if (at <= 0) return 0;
    at = text.lastIndexOf(LINE_FEED, at - 1);
    if (at === -1) return 0;
  }
  return at + 1;
}

/** U+0080 to U+009F, of which some begin a sequence. */
function hasC1(text: Buffer): boolean {
  for (let at = text.indexOf(0xc2); at !== -1; at = text.indexOf(0xc2, at + 1)) {
    const next = text[at + 1] ?? 0;
    if (next >= 0x80 && next < 0xa0) return true;
  }
  return false;
}

function afterLast(text: string, word: string): number {
  const at = text.lastIndexOf(word);
  return at === -1 ? 0 : at + word.length;
}
