/** Says on stderr what went wrong, once, as a person or a program wants to read it; answers with the exit code. */
import { AilsdError } from '../protocol/errors.js';
import { escapeLines, escapeText } from './escape.js';
import { EXIT } from './exit-codes.js';
import type { Io } from './io.js';
import { jsonText } from './output.js';
import type { Style } from './style.js';

export interface ReportOptions {
  readonly json: boolean;
  readonly debug: boolean;
  readonly style: Style;
  /** Whether the command's codes are those of a program elsewhere. */
  readonly endsWithRemoteCode?: boolean;
}

export function reportError(thrown: unknown, io: Io, options: ReportOptions): number {
  const error = toAilsdError(thrown);
  const { retryable } = error.row;
  const exit = options.endsWithRemoteCode === true ? besideRemoteCodes(error) : error.row.exit;
  if (options.json) {
    const { code, message, hint } = error;
    // Details come first: none of them can pass itself off as the code.
    const known = { code, message, retryable, exit_code: exit, hint };
    const debug = options.debug ? { debug: story(thrown).split('\n') } : {};
    io.err.write(`${jsonText({ error: { ...error.details, ...known, ...debug } }, false)}\n`);
  } else {
    const head = options.style.bad(`ailsd: ${error.code}:`);
    io.err.write(`${head} ${escapeText(error.message)}\n`);
    io.err.write(`  ${options.style.dim('hint:')} ${escapeText(error.hint)}\n`);
    if (options.debug) io.err.write(`${escapeLines(story(thrown))}\n`);
  }
  return exit;
}

/** 125 for everything of our own; 255 says that what became of the program is not known. */
function besideRemoteCodes({ row }: AilsdError): number {
  return row.exit === EXIT.lost ? EXIT.lost : EXIT.notStarted;
}

/** What nobody foresaw is our fault: it gets a code like everything else, and its details only with --debug. */
function toAilsdError(thrown: unknown): AilsdError {
  if (thrown instanceof AilsdError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new AilsdError('INTERNAL', `something unexpected happened: ${message}`, { cause: thrown });
}

const MOST_CAUSES = 8;

function story(thrown: unknown): string {
  const parts: string[] = [];
  let next: unknown = thrown;
  for (let depth = 0; next !== undefined && depth < MOST_CAUSES; depth += 1) {
    const lead = depth === 0 ? '' : 'caused by ';
    if (next instanceof AilsdError && next.internal !== undefined)
      parts.push(`internal: ${next.internal}`);
    parts.push(lead + (next instanceof Error ? (next.stack ?? next.message) : String(next)));
    next = next instanceof Error ? next.cause : undefined;
  }
  return parts.join('\n');
}
