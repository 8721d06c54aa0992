/** Our shell client with everything it tells kept for a test to look at. */

import { concatBytes } from '../../src/base/bytes.js';
import { systemClock } from '../../src/base/clock.js';
import {
  type LinkState,
  Shell,
  type ShellOptions,
  type ShellSession,
} from '../../src/client/shell/shell.js';
import type { ShellEvent } from '../../src/client/shell/shell-stream.js';
import type { AilsdError } from '../../src/protocol/errors.js';

export interface WatchedShell extends AsyncDisposable {
  readonly shell: Shell;
  readonly events: ShellEvent[];
  readonly links: LinkState[];
  readonly problems: AilsdError[];
  /** All output, in order. */
  output(): Uint8Array;
  readonly outputBytes: number;
}

export function watchShell(
  session: ShellSession,
  options: Partial<ShellOptions> & { readonly onOutput?: (bytes: Uint8Array) => void } = {},
  random: () => number = Math.random,
): WatchedShell {
  const events: ShellEvent[] = [];
  const links: LinkState[] = [];
  const problems: AilsdError[] = [];
  const chunks: Uint8Array[] = [];
  let outputBytes = 0;
  const { onOutput, ...start } = options;
  const shell = new Shell(
    session,
    {
      clock: systemClock,
      random,
      userAgent: 'test',
      agentFor: async () => undefined,
      trace: () => undefined,
    },
    { clientId: `cl_${crypto.randomUUID()}`, size: { cols: 80, rows: 24 }, ...start },
    {
      event: (event) => {
        if (event.kind === 'output') {
          outputBytes += event.bytes.length;
          if (onOutput === undefined) chunks.push(event.bytes.slice());
          else onOutput(event.bytes);
          shell.consumed(event.end);
        } else {
          events.push(event);
          if (event.kind === 'screen') shell.consumed(event.end);
        }
      },
      link: (state) => links.push(state),
      problem: (error) => problems.push(error),
      room: () => undefined,
    },
  );
  return {
    shell,
    events,
    links,
    problems,
    output: () => concatBytes(chunks),
    get outputBytes() {
      return outputBytes;
    },
    [Symbol.asyncDispose]: () => shell[Symbol.asyncDispose](),
  };
}
