/** Shells as lists show them: terminals that live in a sandbox, whoever is connected. */
import * as z from 'zod/mini';
import { actor, outcome, role, size, text } from '../frame-fields.js';
import { count, maybe, plainId, timestamp } from './fields.js';

export const shellView = z.object({
  id: plainId,
  /** What runs in it. */
  title: text(0, 256),
  /** `ended`: nobody has seen its end yet. */
  state: z.enum(['running', 'ended']),
  started_at: timestamp,
  ended_at: maybe(timestamp),
  outcome: maybe(z.object(outcome)),
  cols: size,
  rows: size,
  /** Since it began. */
  output_bytes: count,
  viewers: z
    .array(z.object({ actor, role, subject: maybe(text(1, 256)) }))
    .check(z.maxLength(1024)),
});

export type ShellView = z.output<typeof shellView>;

export const shellList = z.object({ items: z.array(shellView).check(z.maxLength(4096)) });
