/** The languages code can be in: what runs it, with the code on its standard input, and how to have a word printed. */
import type { LANGUAGES } from '../../../protocol/shapes/code.js';

export type Language = (typeof LANGUAGES)[number];

interface Interpreter {
  readonly argv: readonly string[];
  /** Code that writes two words, one after the other, and nothing else. */
  readonly print: (first: string, second: string) => string;
}

export const INTERPRETERS: Readonly<Record<Language, Interpreter>> = {
  python: {
    // Unbuffered: what was written before a timeout is not lost.
    argv: ['python3', '-u', '-'],
    print: (first, second) =>
      `import sys\nsys.stdout.write("${first}")\nsys.stdout.flush()\nsys.stdout.write("${second}")\n`,
  },
  javascript: {
    argv: ['node', '-'],
    print: (first, second) => `process.stdout.write("${first}");process.stdout.write("${second}");`,
  },
  bash: {
    // Read whole before any of it runs: what the code starts must not read the code as its input.
    argv: ['bash', '-c', 'eval "$(cat)" </dev/null'],
    print: (first, second) => `printf %s ${first}\nprintf %s ${second}\n`,
  },
};
