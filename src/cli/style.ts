/** Colour and weight, or nothing: every printer takes a `Style` and need not ask whether there is a terminal. */
import type { Environment } from './config.js';
import { isOn } from './config.js';
import type { Sink } from './io.js';

export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
  accent(text: string): string;
}

const same = (text: string): string => text;
export const plain: Style = {
  bold: same,
  dim: same,
  good: same,
  warn: same,
  bad: same,
  accent: same,
};

/** chalk is loaded only where something will be coloured. */
export async function styleFor(sink: Sink, environment: Environment): Promise<Style> {
  if (!wantsColour(sink, environment)) return plain;
  const { Chalk } = await import('chalk');
  const chalk = new Chalk({ level: 1 });
  return {
    bold: chalk.bold,
    dim: chalk.dim,
    good: chalk.green,
    warn: chalk.yellow,
    bad: chalk.red,
    accent: chalk.cyan,
  };
}

/** https://no-color.org: NO_COLOR set to anything switches it off; FORCE_COLOR is for terminals we can't see. */
export function wantsColour(sink: Sink, environment: Environment): boolean {
  if (environment.variable('NO_COLOR') !== undefined) return false;
  if (environment.variable('FORCE_COLOR') !== undefined)
    return isOn(environment.variable('FORCE_COLOR'));
  return sink.isTerminal && environment.variable('TERM') !== 'dumb';
}
