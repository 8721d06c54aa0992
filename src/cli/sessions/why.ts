/** `sandbox why`: who keeps a sandbox alive, until when, and what happens then. */
import { Asker } from '../../client/sessions/asker.js';
import { callRoute, type Document, isDocument } from '../../client/sessions/call.js';
import type { Context } from '../context.js';
import type { Style } from '../style.js';
import { fieldLines, shown } from './document-text.js';
import { onSandbox } from './find-sandbox.js';
import { createSessionWorld } from './session-world.js';

export async function runWhy(context: Context, named: string | undefined): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal, output, style } = context;
  const why = await onSandbox(context, world, asker, named, (id) =>
    callRoute(asker, 'explainSandbox', { parameters: { sandbox_id: id }, signal }),
  );
  output.result(why, () => whyText(why, style));
}

function whyText(why: Document, style: Style): string {
  const next = isDocument(why['next']) ? why['next'] : {};
  const cause = BECAUSE[shown(next, 'because')];
  const reason = cause === undefined ? '' : `, ${cause(why)}`;
  const keepers = keepersOf(why);
  const rows: [string, string][] = [
    ['last active', shown(why, 'last_active_at')],
    ...keepers.map((text, at): [string, string] => [at === 0 ? 'kept by' : '', text]),
    ['then', `${shown(next, 'state')} at ${shown(next, 'at')}${reason}`],
    ['ends', `${shown(why, 'expires_at')} in any case`],
  ];
  const thread = shown(why, 'thread_id');
  const name = `${style.bold(shown(why, 'sandbox_id'))}${thread === '' ? '' : ` of ${thread}`}`;
  return `${name} is ${shown(why, 'state')}\n${fieldLines(rows, style)}`;
}

function keepersOf(why: Document): readonly string[] {
  const { kept_by: list, activity_known: known, state } = why;
  const keepers = Array.isArray(list) ? list.filter(isDocument).map(keeperText) : [];
  const unknown =
    state === 'active' && known === false ? ['what goes on inside could not be found out'] : [];
  return keepers.length + unknown.length === 0 ? ['nothing'] : [...keepers, ...unknown];
}

function keeperText(keeper: Document): string {
  const by = shown(keeper, 'by');
  const until = shown(keeper, 'until');
  const words = by === 'lease' ? 'its lease: heartbeats and attaching' : `${by} that are open`;
  const known = by === 'commands' ? 'commands that run' : words;
  const count = shown(keeper, 'count');
  return `${count === '' ? '' : `${count} `}${known}${until === '' ? '' : `, until ${until}`}`;
}

const BECAUSE: Readonly<Record<string, (why: Document) => string>> = {
  idle_timeout: (why) => `after ${shown(why, 'idle_timeout_seconds')} s in which nothing keeps it`,
  hard_ttl: () => 'because its time is over',
  start_deadline: () => 'if it has not started by then',
};
