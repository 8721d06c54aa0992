/** One thing `doctor` looks at: each check is bounded in time and ends in a finding, whatever happens inside. */
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';

export interface Finding {
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly detail: string;
  /** What to do about it; only where there is something to do. */
  readonly hint?: string;
}

export interface Check {
  readonly name: string;
  run(context: Context): Finding | Promise<Finding>;
}

export const CHECK_TIMEOUT_MS = 3_000;

export async function runCheck(check: Check, context: Context): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((resolve) => {
    const finding: Finding = { state: 'failed', detail: `no answer within ${CHECK_TIMEOUT_MS} ms` };
    timer = setTimeout(() => resolve(finding), CHECK_TIMEOUT_MS);
  });
  try {
    return await Promise.race([late, check.run(context)]);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    const hint = error instanceof AilsdError ? { hint: error.hint } : {};
    return { state: 'failed', detail, ...hint };
  } finally {
    clearTimeout(timer);
  }
}
