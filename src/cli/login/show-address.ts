/** Shows where to go to log in, and the code to compare: first of all, always, on stderr. */
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { jsonText } from '../output.js';
import { styleFor, wantsColour } from '../style.js';

export interface Address {
  /** What a person can type. */
  readonly url: string;
  /** With everything in it, for a QR code. */
  readonly completeUrl?: string | undefined;
  /** Absent where the address is all there is. */
  readonly code?: string | undefined;
  /** Told to programs. */
  readonly expiresInSeconds?: number | undefined;
}

export async function showAddress(
  context: Context,
  address: Address,
  wantsQr: boolean,
): Promise<void> {
  const { io, output } = context;
  if (output.mode !== 'text') {
    const { url, completeUrl = null, code = null, expiresInSeconds = null } = address;
    const line = {
      verification_uri: url,
      verification_uri_complete: completeUrl,
      user_code: code,
      expires_in: expiresInSeconds,
    };
    io.err.write(`${jsonText(line, false)}\n`);
    return;
  }
  io.err.write(await addressText(context, address));
  const picture = await qrText(context, address, wantsQr);
  if (picture !== undefined) io.err.write(picture);
}

async function addressText({ io, environment }: Context, { url, code }: Address): Promise<string> {
  const style = await styleFor(io.err, environment);
  const shownUrl = style.accent(escapeText(url));
  if (code === undefined)
    return `\nTo log in, open this page in a browser here:\n\n  ${shownUrl}\n\n`;
  const lead = `\nTo log in, open this page in any browser:\n\n  ${shownUrl}\n\n`;
  const shown = escapeText(code);
  if (!io.err.isTerminal) return `${lead}and compare or enter this code:\n\n  ${shown}\n\n`;
  const edge = '─'.repeat(shown.length + 4);
  const box = [`╭${edge}╮`, `│  ${style.bold(shown)}  │`, `╰${edge}╯`];
  const lines = box.map((line) => `  ${line}\n`).join('');
  return `${lead}and compare or enter this code:\n\n${lines}\n`;
}

/** Lines that are on the screen beside the picture: the address, the code, what is waited for. */
const OTHER_LINES = 14;

/** Where it would push address and code off the screen it is drawn only if it was asked for. */
async function qrText(
  { io, environment }: Context,
  { url, completeUrl }: Address,
  wantsQr: boolean,
): Promise<string | undefined> {
  if (!wantsQr && !io.err.isTerminal) return undefined;
  const { drawQr } = await import('./qr.js');
  const picture = drawQr(completeUrl ?? url, wantsColour(io.err, environment));
  const fits =
    picture.columns + 2 <= io.err.columns &&
    picture.lines.length + OTHER_LINES <= (process.stderr.rows ?? 0);
  if (!wantsQr && !fits) return undefined;
  return `${picture.lines.map((line) => `  ${line}\n`).join('')}\n`;
}
