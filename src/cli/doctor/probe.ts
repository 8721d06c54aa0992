/** Runs a probe program of ours in a child: native code that hangs or crashes takes only the child with it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';

export type ProbeAnswer =
  | { readonly kind: 'works' }
  | { readonly kind: 'fails'; readonly reason: string }
  | { readonly kind: 'hangs' };

const PROBE_TIMEOUT_MS = 2_500;
const MOST_OUTPUT_BYTES = 64 * 1024;

/** Probes are built beside this program. */
export function runProbe(name: string, signal: AbortSignal): Promise<ProbeAnswer> {
  const file = join(import.meta.dirname, `${name}.cjs`);
  const options = {
    timeout: PROBE_TIMEOUT_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MOST_OUTPUT_BYTES,
    signal,
    // Ours may be gone.
    cwd: import.meta.dirname,
  } as const;
  return new Promise((resolve) => {
    execFile(process.execPath, [file], options, (error, stdout, stderr) => {
      if (error?.killed === true) resolve({ kind: 'hangs' });
      else resolve(parseAnswer(stdout, stderr));
    });
  });
}

function parseAnswer(stdout: string, stderr: string): ProbeAnswer {
  try {
    const answer: unknown = JSON.parse(stdout);
    if (typeof answer === 'object' && answer !== null && 'works' in answer) {
      if (answer.works === true) return { kind: 'works' };
      return {
        kind: 'fails',
        reason: 'reason' in answer ? String(answer.reason) : 'it does not work',
      };
    }
  } catch {
    // Not JSON: the probe crashed, and its last words are on stderr.
  }
  const words = stderr.split('\n').find((line) => /error/i.test(line)) ?? stderr.split('\n')[0];
  return { kind: 'fails', reason: words?.trim() || 'it ended without an answer' };
}
