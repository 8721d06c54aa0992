/** `sandbox logs`: the log as it comes, its bytes made safe to print. */
import { Asker } from '../../client/sessions/asker.js';
import { type Document, routeUrl } from '../../client/sessions/call.js';
import { callForLines } from '../../client/sessions/call-lines.js';
import type { LogOptions } from '../commands/sandbox.js';
import type { Context } from '../context.js';
import { escapeLines } from '../escape.js';
import { jsonText } from '../output.js';
import { shown } from './document-text.js';
import { onSandbox } from './find-sandbox.js';
import { createSessionWorld } from './session-world.js';

export async function runSandboxLogs(
  context: Context,
  named: string | undefined,
  { follow = false, tail }: LogOptions,
): Promise<void> {
  using world = createSessionWorld(context);
  const asker = new Asker(world);
  const { signal, output, io } = context;
  // What is followed has no end, and so no document.
  const asDocument = output.mode === 'json' && !follow;
  await onSandbox(context, world, asker, named, async (id) => {
    const query = { follow: follow ? 1 : undefined, tail };
    const url = routeUrl('getSandboxLogs', { sandbox_id: id }, query);
    const chunks: Document[] = [];
    for await (const chunk of callForLines(asker, url, signal)) {
      if (asDocument) chunks.push(chunk);
      else if (output.mode === 'text') io.out.write(chunkText(chunk));
      else io.out.write(`${jsonText(chunk, false)}\n`);
    }
    if (asDocument) output.list(chunks, () => '');
  });
}

function chunkText(chunk: Document): string {
  const data = typeof chunk['data'] === 'string' ? chunk['data'] : '';
  const text = chunk['encoding'] === 'base64' ? Buffer.from(data, 'base64').toString() : data;
  const lines = escapeLines(text.replace(/\r?\n$/, '')).split('\n');
  return lines.map((line) => `${shown(chunk, 'at')}  ${line}\n`).join('');
}
