/** Runs the built command line as a person would: in a real PTY, with a screen that can be read. */
import { spawn } from '@lydell/node-pty';
import { Terminal } from '@xterm/headless';
import { BIN, type CliOptions, cleanEnvironment } from './cli.js';
import { eventually } from './eventually.js';
import { screenCells } from './screen-cells.js';

export interface PtyProgram extends Disposable {
  /** The rows of the screen as a person sees them, without the empty ones at the end. */
  screen(): string;
  /** The screen with its colours and styles, a row each, and the cursor. */
  cells(): string[];
  /** Every byte the program sent. */
  raw(): string;
  type(text: string): void;
  resize(columns: number, rows: number): void;
  /** Waits until the screen shows it. */
  shows(text: string): Promise<void>;
  /** Waits for the end: 128 + n for a signal, as a shell would say. */
  ended(): Promise<number>;
}

type PtyOptions = CliOptions & { readonly columns?: number; readonly rows?: number };

export function ailsdInPty(args: readonly string[], options: PtyOptions = {}): PtyProgram {
  return programInPty(process.execPath, [BIN, ...args], options);
}

export function programInPty(
  program: string,
  args: readonly string[],
  options: PtyOptions = {},
): PtyProgram {
  const cols = options.columns ?? 80;
  const rows = options.rows ?? 24;
  const terminal = new Terminal({
    cols,
    rows,
    allowProposedApi: true,
    convertEol: false,
    scrollback: 1000,
  });
  const env = { TERM: 'xterm-256color', LANG: 'C.UTF-8', ...cleanEnvironment(options.env) };
  const pty = spawn(program, [...args], { cols, rows, env, cwd: options.cwd ?? '/' });
  let raw = '';
  let code: number | undefined;
  pty.onData((data) => {
    raw += data;
    terminal.write(data);
  });
  pty.onExit((exit) => {
    code = exit.signal !== undefined && exit.signal > 0 ? 128 + exit.signal : exit.exitCode;
  });
  const screen = (): string => {
    const { active } = terminal.buffer;
    const lines = Array.from(
      { length: active.length },
      (_, row) => active.getLine(row)?.translateToString(true) ?? '',
    );
    return lines.join('\n').trimEnd();
  };
  return {
    screen,
    cells: () => screenCells(terminal),
    raw: () => raw,
    type: (text) => pty.write(text),
    resize: (columns, height) => pty.resize(columns, height),
    shows: (text) =>
      eventually(
        () => screen().includes(text),
        () => `screen never showed ${text}:\n${screen()}`,
      ),
    ended: async () => {
      await eventually(
        () => code !== undefined,
        () => `it did not end:\n${screen()}`,
      );
      return code ?? -1;
    },
    [Symbol.dispose]: () => {
      if (code === undefined) pty.kill('SIGKILL');
      terminal.dispose();
    },
  };
}
