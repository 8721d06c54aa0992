/** Access that was negotiated elsewhere (S2 phase 0): the MVP answer as a document, bare or inside a run's configuration. */
import * as z from 'zod/mini';
import { type Parsed, parse } from '../parse.js';
import { sessionAnswer } from './sessions.js';

export const bootstrap = z.pick(sessionAnswer, {
  session_id: true,
  thread_id: true,
  sandbox: true,
  token: true,
  expires_at: true,
});

export type Bootstrap = z.output<typeof bootstrap>;

/** Where a run's configuration keeps it. */
export const runConfig = z.object({
  config: z.object({ configurable: z.object({ sandbox: bootstrap }) }),
});

/** Takes either form; what is wrong is named by its path in the form that was given. */
export function parseBootstrap(value: unknown): Parsed<Bootstrap> {
  const subject = 'the sandbox access: ';
  if (!isObject(value) || !Object.hasOwn(value, 'config'))
    return parse(bootstrap, value, 'CONFIG_INVALID', subject);
  const wrapped = parse(runConfig, value, 'CONFIG_INVALID', subject);
  return wrapped.ok ? { ok: true, value: wrapped.value.config.configurable.sandbox } : wrapped;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
