/** Our commander command: throws instead of exiting, has examples, carries the global options, prints help in one form. */
import { Command as Commander, CommanderError, type Help } from 'commander';
import { describeCommand } from './describe.js';
import { helpPage } from './help-page.js';
import { jsonText } from './output.js';
import { plain, type Style } from './style.js';

export interface Example {
  readonly run: string;
  readonly does: string;
}

export interface Note {
  readonly heading: string;
  readonly rows: readonly (readonly [term: string, meaning: string])[];
}

/** How help is printed; set once, before a command line is parsed. */
export interface HelpLook {
  readonly columns: number;
  readonly style: Style;
  readonly json: boolean;
}

export class Command extends Commander {
  readonly examples: Example[] = [];
  readonly notes: Note[] = [];
  static look: HelpLook = { columns: 80, style: plain, json: false };

  constructor(name: string) {
    super(name);
    this.exitOverride();
    this.helpCommand(false);
    this.helpOption('-h, --help', 'print this help');
    this.enablePositionalOptions();
    this.allowExcessArguments(false);
    this.configureOutput({
      outputError: () => {},
      getOutHelpWidth: () => Command.look.columns,
      getOutHasColors: () => true,
    });
  }

  /** Lines that work when pasted; every command has some. */
  example(run: string, does: string): this {
    this.examples.push({ run, does });
    return this;
  }

  /** A list that belongs on the page of help, below the options. */
  note(heading: string, rows: Note['rows']): this {
    this.notes.push({ heading, rows });
    return this;
  }

  override helpInformation(): string {
    if (Command.look.json) return `${jsonText(describeCommand(this), true)}\n`;
    return super.helpInformation();
  }

  /** A group of commands named without one of them: its help is the answer, and no error. */
  override help(): never {
    this.outputHelp();
    throw new CommanderError(0, 'commander.helpDisplayed', '');
  }

  override createHelp(): Help {
    return Object.assign(super.createHelp(), helpPage(Command.look.style));
  }
}
