/** `--status-file`: how the command ended and who says so, for scripts that cannot tell it from a number. Whole or not there. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { errorCode } from '../../base/error-code.js';
import { AilsdError } from '../../protocol/errors.js';

export class StatusFile {
  readonly #path: string;

  /** Says at once that nothing is known yet: an old file must not be taken for this command's, nor a killed client for a success. */
  constructor(path: string, first: object) {
    this.#path = path;
    this.write(first);
  }

  write(document: object): void {
    const beside = `${this.#path}.${process.pid}.tmp`;
    try {
      writeFileSync(beside, `${JSON.stringify(document)}\n`, { mode: 0o644, flush: true });
      renameSync(beside, this.#path);
    } catch (error) {
      rmSync(beside, { force: true });
      const code = errorCode(error) ?? 'unknown';
      throw new AilsdError('USAGE', `the status file cannot be written (${code})`, {
        cause: error,
        details: { path: this.#path },
        hint: 'name a file in a folder that is there and may be written to',
      });
    }
  }
}
