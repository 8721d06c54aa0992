/** A command of ours that is followed by one of somebody else's: everything behind the first `--` is taken as it stands. */
import type { ParseOptionsResult } from 'commander';
import { AilsdError } from '../../protocol/errors.js';
import { Command } from '../command.js';

export class RestCommand extends Command {
  /** `undefined` where there was no `--`. */
  rest: readonly string[] | undefined;

  override parseOptions(args: string[]): ParseOptionsResult {
    const end = args.indexOf('--');
    if (end === -1) return super.parseOptions(args);
    this.rest = args.slice(end + 1);
    return super.parseOptions(args.slice(0, end));
  }

  /** The program and its arguments. */
  argv(): readonly string[] {
    const [program] = this.rest ?? [];
    const name = `ailsd ${this.name()}`;
    if (this.rest === undefined || program === undefined) {
      throw new AilsdError('USAGE', 'no command is named', {
        hint: `put it behind two dashes: \`${name} -- COMMAND\``,
      });
    }
    if (program === '') throw new AilsdError('USAGE', 'the name of the command is empty');
    return this.rest;
  }
}
