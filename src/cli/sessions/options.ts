/** Options that several commands about sandboxes share, and how their values are read. */
import { InvalidArgumentError } from 'commander';
import { CAPABILITIES, type Capability, fromWord } from '../../protocol/capabilities.js';
import type { Command } from '../command.js';
import { nearest } from '../nearest.js';

export interface CapabilityOptions {
  readonly cap?: readonly Capability[];
}

export function capabilityOption(command: Command, summary: string): Command {
  const names = Object.entries(CAPABILITIES).map(([name, { grants }]) => [name, grants] as const);
  return command
    .option('--cap <capability>', `${summary}; may be repeated`, collectCapabilities)
    .note('Capabilities:', names);
}

/** Several at once, separated by commas or spaces; S2's words are understood too. */
export function collectCapabilities(
  value: string,
  before: readonly Capability[] = [],
): readonly Capability[] {
  const words = value.split(/[\s,]+/).filter((word) => word !== '');
  return [...before, ...words.map(parseCapability)];
}

function parseCapability(word: string): Capability {
  const capability = fromWord(word);
  if (capability !== undefined) return capability;
  const names = Object.keys(CAPABILITIES);
  const near = nearest(word, names);
  throw new InvalidArgumentError(
    near === undefined ? `Capabilities are ${names.join(', ')}.` : `Did you mean ${near}?`,
  );
}

/** Whole seconds of `90`, `90s`, `15m`, `8h` or `2d`. */
export function parseSeconds(value: string): number {
  const [, digits = '', unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(value) ?? [];
  const seconds = Number(digits) * (UNIT_SECONDS[unit] ?? Number.NaN);
  if (digits !== '' && Number.isSafeInteger(seconds)) return seconds;
  throw new InvalidArgumentError('Write it as 90s, 15m, 8h or 2d.');
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

export interface TimeoutOptions {
  readonly timeout?: number;
  readonly wait: boolean;
}

export function timeoutOptions(command: Command): Command {
  return command
    .option(
      '--timeout <time>',
      'how long a sandbox may take to start: 120s by default',
      parseSeconds,
    )
    .option('--no-wait', 'do not wait for a sandbox that is still starting');
}

/** In the words of `negotiate`. */
export function startTimeoutMs({ timeout, wait }: TimeoutOptions): number | undefined {
  if (!wait) return 0;
  return timeout === undefined ? undefined : timeout * 1000;
}

/** `a=b` pairs, collected. */
export function collectPairs(
  value: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const at = value.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Write it as name=value.');
  return { ...before, [value.slice(0, at)]: value.slice(at + 1) };
}

/** Of a list that comes in pages: see `printPages`. */
export interface PageOptions {
  readonly limit?: number;
  readonly cursor?: string;
  readonly all?: boolean;
}

export function pageOptions(command: Command): Command {
  return command
    .option('--limit <count>', 'how many at most, 200 a page', parseCount)
    .option('--cursor <cursor>', 'from where an earlier list ended')
    .option('--all', 'all of them, however many');
}

export function parseCount(value: string): number {
  const count = Number(value);
  if (/^\d{1,9}$/.test(value) && count > 0) return count;
  throw new InvalidArgumentError('It must be a whole number from 1 up.');
}

/** As the protocol has them; a test compares. */
export const STATES = ['provisioning', 'active', 'idle', 'suspended', 'terminated', 'failed'];
