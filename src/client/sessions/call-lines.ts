/** Calls a route that answers with JSON lines, and gives each as it comes. */
import { AilsdError } from '../../protocol/errors.js';
import { errorFromAnswer } from '../http/answer.js';
import { streamAnswer } from '../http/stream-answer.js';
import type { Asker } from './asker.js';
import { type Document, isDocument } from './call.js';

export async function* callForLines(
  asker: Asker,
  url: string,
  signal?: AbortSignal,
): AsyncGenerator<Document, void, undefined> {
  const headers = { accept: 'application/jsonl' };
  const answer = await asker.withAccess({ url, headers, signal }, (request, http) =>
    streamAnswer(http, request),
  );
  if (answer.status !== 200) throw errorFromAnswer(await answer.whole());
  for await (const line of answer.lines()) {
    if (line !== '') yield documentOf(line);
  }
}

function documentOf(line: string): Document {
  try {
    const value: unknown = JSON.parse(line);
    if (isDocument(value)) return value;
  } catch {
    // Said below, without the parser's words: they repeat the line.
  }
  throw new AilsdError('PROTOCOL_MISMATCH', "the server's answer: a line is not a JSON object");
}
