/** Runs a piece of code in a session that was opened for it: readiness first, then the code, its output without secrets. */
import type { RandomFill } from '../../../protocol/ids.js';
import { CODE_OUTPUT_BYTES } from '../../../protocol/shapes/code.js';
import { Invocations, type OutputStream } from '../../store/invocations.js';
import { Sessions } from '../../store/sessions.js';
import type { BrokerParts } from '../parts.js';
import type { Work } from './calls.js';
import { type Command, type CommandEnd, type CommandPlace, runCommand } from './command.js';
import { INTERPRETERS, type Language } from './languages.js';
import { NOTHING, notRun, type Outcome, statusOf, wordsOf } from './outcome.js';
import { CodeOutput, KEPT_MAX_BYTES, type Redacting } from './output.js';
import { proveReady, ReadySessions } from './readiness.js';

export interface RunCodeParts {
  readonly broker: BrokerParts;
  /** Made for each output; knows what else must not appear. */
  readonly redactorFor: (sandbox: Work['opened']['sandbox']) => Redacting;
}

export interface Code {
  readonly text: string;
  readonly language: Language;
  readonly timeoutMs: number;
  readonly requestId: string;
  /** Told of what is shown, as it comes. */
  readonly onOutput?: ((stream: OutputStream, bytes: Uint8Array) => void) | undefined;
}

/** What a caller asks for is held within these; a call that may take minutes is a job, not a call. */
export const CODE_TIMEOUT_MS = { min: 100, default: 60_000, max: 600_000 } as const;
/** What the sandbox token has to outlive: the longest run, a start of the interpreter, and a grace. */
export const CODE_TOKEN_SECONDS = 900;

const PROBE_TIMEOUT_MS = 15_000;
const PROBE_MAX_BYTES = 64 * 1024;

export function codeTimeout(asked: number | undefined): number {
  const { min, default: usual, max } = CODE_TIMEOUT_MS;
  return Math.min(max, Math.max(min, Math.floor(asked ?? usual)));
}

export class CodeRunner {
  readonly #parts: RunCodeParts;
  readonly #ready = new ReadySessions();

  constructor(parts: RunCodeParts) {
    this.#parts = parts;
  }

  /** Rejects while nothing of the caller's has run: the sandbox is not ready. After that, everything is an outcome. */
  async run(work: Work, code: Code): Promise<Outcome> {
    await this.#proveReady(work, code);
    const { broker } = this.#parts;
    const begin = broker.clock.monotonic();
    const outputs = this.#outputs(work, code);
    const read = { stdout: 0, stderr: 0 };
    try {
      const end = await this.#command(work, code, {
        code: code.text,
        timeoutMs: code.timeoutMs,
        outputMaxBytes: KEPT_MAX_BYTES,
        suffix: '',
        onOutput: async (stream, bytes) => {
          read[stream] += bytes.length;
          await outputs[stream].push(bytes);
        },
      });
      await Promise.all([outputs.stdout.end(), outputs.stderr.end()]);
      return {
        ...statusOf(end),
        durationMs: broker.clock.monotonic() - begin,
        stdout: shownOf(outputs.stdout, end.stdoutBytes, end.isStdoutTruncated),
        stderr: shownOf(outputs.stderr, end.stderrBytes, end.isStderrTruncated),
      };
    } catch (thrown) {
      await Promise.all([outputs.stdout.end(), outputs.stderr.end()]).catch(() => undefined);
      const { signal } = work;
      const message = signal.aborted ? 'the caller went away' : wordsOf(thrown);
      if (!signal.aborted)
        broker.logger.warn('code was lost', { invocation_id: work.invocationId, error: thrown });
      return {
        ...notRun('error', message),
        durationMs: broker.clock.monotonic() - begin,
        stdout: shownOf(outputs.stdout, read.stdout, false),
        stderr: shownOf(outputs.stderr, read.stderr, false),
      };
    }
  }

  async #proveReady(work: Work, code: Code): Promise<void> {
    const { opened } = work;
    const { sandbox, session } = opened;
    const key = `${session.id} ${sandbox.keyGeneration} ${code.language}`;
    if (this.#ready.has(key)) return;
    const random: RandomFill = this.#parts.broker.random;
    await proveReady(code.language, random, async (probe) => {
      const redactor = this.#parts.redactorFor(sandbox);
      const output = new CodeOutput({ redactor, shownMaxBytes: PROBE_MAX_BYTES });
      const end = await this.#command(work, code, {
        code: probe,
        timeoutMs: PROBE_TIMEOUT_MS,
        outputMaxBytes: PROBE_MAX_BYTES,
        suffix: '_ready',
        onOutput: async (stream, bytes) => {
          if (stream === 'stdout') await output.push(bytes);
        },
      });
      await output.end();
      return { end, shown: output.text };
    });
    this.#ready.add(key);
  }

  #command(
    { opened, invocationId, signal }: Work,
    { language, requestId }: Code,
    run: Pick<Command, 'timeoutMs' | 'outputMaxBytes' | 'onOutput'> & {
      readonly code: string;
      readonly suffix: string;
    },
  ): Promise<CommandEnd> {
    const { clock, db } = this.#parts.broker;
    const { session, sandbox, minted } = opened;
    const place: CommandPlace = {
      wsUrl: sandbox.endpoints.wsUrl,
      token: minted.token,
      requestId,
      isThere: async () => {
        const held = await new Sessions(db).find(session.id);
        return held?.session.endedAtMs === undefined && held?.sandbox.state === 'active';
      },
    };
    const command: Command = {
      id: `${invocationId.replace('inv_', 'cmd_')}${run.suffix}`,
      argv: INTERPRETERS[language].argv,
      input: Buffer.from(run.code),
      timeoutMs: run.timeoutMs,
      outputMaxBytes: run.outputMaxBytes,
      onOutput: run.onOutput,
    };
    return runCommand({ clock }, place, command, signal);
  }

  #outputs(
    { opened, invocationId, retentionDays }: Work,
    { onOutput }: Code,
  ): Readonly<Record<OutputStream, CodeOutput>> {
    const kept = new Invocations(this.#parts.broker.db);
    const open = (stream: OutputStream) =>
      new CodeOutput({
        redactor: this.#parts.redactorFor(opened.sandbox),
        shownMaxBytes: CODE_OUTPUT_BYTES[stream],
        keep: (data, position) =>
          kept.addOutput(invocationId, { stream, position, data }, retentionDays),
        onShown: onOutput && ((bytes) => onOutput(stream, bytes)),
      });
    return { stdout: open('stdout'), stderr: open('stderr') };
  }
}

function shownOf(output: CodeOutput, bytes: number, isTruncated: boolean) {
  if (bytes === 0) return NOTHING;
  return { text: output.text, bytes, isTruncated: output.isCut || isTruncated };
}
