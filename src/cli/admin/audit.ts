/** `ailsd admin audit`: what happened, filtered; or all of it as JSON lines, as it comes. */
import { InvalidArgumentError, Option } from 'commander';
import { Asker } from '../../client/sessions/asker.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { jsonText } from '../output.js';
import { shown } from '../sessions/document-text.js';
import { type PageOptions, pageOptions, parseSeconds } from '../sessions/options.js';
import { type Column, printPages } from '../sessions/pages.js';
import { createSessionWorld } from '../sessions/session-world.js';

interface AuditOptions extends PageOptions {
  readonly since?: string;
  readonly until?: string;
  readonly tenant?: string;
  readonly sub?: string;
  readonly event?: string;
  readonly threadId?: string;
  readonly sessionId?: string;
  readonly export?: string;
}

export function adminAuditCommand(context: Context): Command {
  return pageOptions(new Command('audit'))
    .option('--since <time>', 'from then on: a time in UTC, or how long ago (2h)', parseTime)
    .option('--until <time>', 'up to then', parseTime)
    .option('--tenant <name>', 'only of this tenant')
    .option('--sub <account>', 'only what was done for this account')
    .option('--event <name>', 'only this kind, such as token.issued')
    .option('--thread-id <thread>', 'only of this thread')
    .option('--session-id <session>', 'only of this session')
    .addOption(new Option('--export <format>', 'all that match, one a line').choices(['jsonl']))
    .description('print what happened')
    .example('ailsd admin audit --since 2h --event token.issued', 'tokens of the last two hours')
    .example('ailsd admin audit --thread-id thr_demo --json', 'for a script')
    .example('ailsd admin audit --export jsonl > audit.jsonl', 'everything, as it comes')
    .action((options: AuditOptions) => runAudit(context, options));
}

const COLUMNS: readonly Column[] = [
  { heading: 'AT', cell: (item) => shown(item, 'at') },
  { heading: 'EVENT', cell: (item) => shown(item, 'event') },
  { heading: 'FOR', cell: (item) => shown(item, 'sub') },
  { heading: 'BY', cell: (item) => shown(item, 'actor') || shown(item, 'client_id') },
  { heading: 'THREAD', cell: (item) => shown(item, 'thread_id') },
  { heading: 'TOKEN', cell: (item) => shown(item, 'jti') },
  { heading: 'DETAILS', cell: (item) => shown(item, 'details') },
];

async function runAudit(context: Context, options: AuditOptions): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal } = context;
  const { since, until, tenant, sub, event, threadId, sessionId } = options;
  const filters = { since, until, tenant, sub, event, thread_id: threadId, session_id: sessionId };
  if (options.export !== undefined) return exportLines(context, asker, filters);
  const { callForPage } = await import('../../client/sessions/call.js');
  await printPages(context, options, COLUMNS, (page) =>
    callForPage(asker, 'readAudit', { parameters: {}, query: { ...page, ...filters }, signal }),
  );
}

async function exportLines(
  { io, signal }: Context,
  asker: Asker,
  filters: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const [{ routeUrl }, { callForLines }] = await Promise.all([
    import('../../client/sessions/call.js'),
    import('../../client/sessions/call-lines.js'),
  ]);
  const url = routeUrl('readAudit', {}, { ...filters, format: 'jsonl' });
  for await (const event of callForLines(asker, url, signal)) {
    io.out.write(`${jsonText(event, false)}\n`);
  }
}

/** The server wants a time; people know how long ago it was. */
function parseTime(value: string): string {
  if (/^\d{4}-\d\d-\d\d/.test(value)) {
    const at = Date.parse(/T/.test(value) ? value : `${value}T00:00:00Z`);
    if (!Number.isNaN(at)) return new Date(at).toISOString();
    throw new InvalidArgumentError('Write it as 2026-02-27T20:20:00Z, or as 2h for how long ago.');
  }
  return new Date(Date.now() - parseSeconds(value) * 1000).toISOString();
}
