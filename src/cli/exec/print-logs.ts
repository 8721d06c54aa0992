/** What a command wrote, to where it would have gone here: as it is into files and pipes, made safe on a terminal. */
import type { LogPiece } from '../../client/exec/log-piece.js';
import type { Context } from '../context.js';
import { escapeLines } from '../escape.js';
import { jsonText } from '../output.js';

export async function printLogs(
  { io, output }: Context,
  pieces: AsyncIterable<LogPiece>,
  follow: boolean,
): Promise<void> {
  // What is followed has no end, and so no document.
  const asDocument = output.mode === 'json' && !follow;
  const documents: object[] = [];
  const text = { stdout: new TextDecoder(), stderr: new TextDecoder(), system: new TextDecoder() };
  for await (const { stream, bytes, document } of pieces) {
    if (asDocument) documents.push(document);
    else if (output.mode !== 'text') io.out.write(`${jsonText(document, false)}\n`);
    else {
      const sink = stream === 'stdout' ? io.out : io.err;
      if (sink.isTerminal) sink.write(escapeLines(text[stream].decode(bytes, { stream: true })));
      else sink.writeBytes(bytes);
    }
  }
  if (asDocument) output.list(documents, () => '');
}
