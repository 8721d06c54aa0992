/** Follows a command from the wish to its end, and keeps the status file true at every step. */
import type { CommandOutcome } from '../../client/exec/exec-words.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';
import { EXIT } from '../exit-codes.js';
import { failureOutcome, outcomeDocument } from './outcome-text.js';
import { StatusFile } from './status-file.js';

interface Place {
  readonly threadId: string;
  readonly sandboxId: string;
}

export class Status {
  readonly #context: Context;
  readonly #commandId: string;
  readonly #file: StatusFile | undefined;
  #place: Place | undefined;

  constructor(context: Context, commandId: string, path: string | undefined) {
    this.#context = context;
    this.#commandId = commandId;
    if (path !== undefined)
      this.#file = new StatusFile(path, this.#document({ state: 'starting' }));
  }

  at(place: Place): void {
    this.#place = place;
    this.#file?.write(this.#document({ state: 'starting' }));
  }

  /** It was started and left alone. */
  detached(): void {
    this.#file?.write(this.#document({ state: 'running', exit_code: EXIT.done }));
  }

  /** Without an outcome we have left, and it goes on. */
  ended(code: number, outcome: CommandOutcome | undefined): void {
    this.#file?.write(
      this.#document({
        state: outcome === undefined ? 'running' : 'ended',
        exit_code: code,
        outcome: outcome === undefined ? null : outcomeDocument(outcome),
      }),
    );
  }

  /** Runs the work; whatever is thrown in it is in the file too. */
  async around<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#failed(error);
      throw error;
    }
  }

  #failed(thrown: unknown): void {
    if (this.#file === undefined) return;
    const error = thrown instanceof AilsdError ? thrown : undefined;
    const isLost = error?.code === 'TRANSPORT_LOST';
    const ours = isLost ? EXIT.lost : EXIT.notStarted;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    const bySignal = this.#context.signals.exitCode;
    const document = this.#document({
      state: isLost || bySignal !== undefined ? 'unknown' : 'not_started',
      exit_code: bySignal ?? ours,
      outcome: outcomeDocument(failureOutcome(thrown)),
      error: { code: error?.code ?? 'INTERNAL', message },
    });
    try {
      this.#file.write(document);
    } catch (failure) {
      // What is being reported is the reason; this came on top of it.
      this.#context.trace(String(failure));
    }
  }

  #document(facts: object): object {
    return {
      command_id: this.#commandId,
      thread_id: this.#place?.threadId ?? null,
      sandbox_id: this.#place?.sandboxId ?? null,
      exit_code: null,
      outcome: null,
      ...facts,
    };
  }
}
