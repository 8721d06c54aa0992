/** A program that was started for a command: the same to the command whether it has pipes or a terminal. */
export type StreamName = 'stdout' | 'stderr';

export interface ProgramEvents {
  data(stream: StreamName, bytes: Uint8Array): void;
  /** So many bytes of input have left our hands, into the program's or into nobody's. */
  taken(bytes: number): void;
  /** Comes once, after all data. */
  ended(end: ProgramEnd): void;
}

/** One of the two. */
export interface ProgramEnd {
  readonly exitCode?: number;
  readonly signal?: string;
}

export interface Program {
  readonly pid: number | undefined;
  write(bytes: Uint8Array): void;
  /** After what was written. */
  endInput(): void;
  hold(stream: StreamName): void;
  release(stream: StreamName): void;
  resize(cols: number, rows: number): void;
  signal(signal: NodeJS.Signals): Promise<void>;
  /** The whole tree, at once. */
  kill(): Promise<void>;
}
