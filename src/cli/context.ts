/** What every command is given: streams, surroundings, settings, output, the wish to stop. */
import type { Environment } from './config.js';
import { isOn } from './config.js';
import { escapeText } from './escape.js';
import type { GlobalOptions } from './global-options.js';
import type { Io } from './io.js';
import { Output, type OutputMode } from './output.js';
import { Settings } from './settings/settings.js';
import { Signals } from './signals.js';
import { plain, type Style, styleFor } from './style.js';

export class Context {
  readonly io: Io;
  readonly environment: Environment;
  readonly signals = new Signals();
  #globals: GlobalOptions | undefined;
  #settings: Settings | undefined;
  #output: Output | undefined;
  #style = plain;
  #exitCode = 0;

  constructor(io: Io, environment: Environment) {
    this.io = io;
    this.environment = environment;
  }

  /** Called once, when the command line is known and before the command runs. */
  async configure(globals: GlobalOptions): Promise<void> {
    this.#globals = globals;
    this.#settings = undefined;
    this.#output = undefined;
    this.#style = await styleFor(this.io.out, this.environment);
  }

  get settings(): Settings {
    const { output, profile, url } = this.#globals ?? {};
    this.#settings ??= new Settings(
      this.environment,
      { output, profile, url },
      { notice: (text) => this.output.notice(text), trace: (text) => this.trace(text) },
    );
    return this.#settings;
  }

  get output(): Output {
    this.#output ??= new Output(this.io, this.outputMode(), this.quiet);
    return this.#output;
  }

  get style(): Style {
    return this.output.mode === 'text' ? this.#style : plain;
  }

  /** Whether only errors are wanted. */
  get quiet(): boolean {
    return this.#globals?.quiet === true;
  }

  get debug(): boolean {
    return this.#globals?.debug === true;
  }

  /** What happens, for whoever asked with --debug; on stderr, whatever the form of the results. */
  trace(text: string): void {
    if (this.debug) this.io.err.write(`ailsd: debug: ${escapeText(text)}\n`);
  }

  /** Aborted by Ctrl-C, SIGTERM and SIGHUP. Asking for it is what makes them be caught. */
  get signal(): AbortSignal {
    return this.signals.signal;
  }

  /** Whether anything may be asked: two terminals, and nobody forbade it. */
  get mayAsk(): boolean {
    return (
      this.#globals?.mayAsk === true &&
      !isOn(this.environment.variable('CI')) &&
      this.output.mode === 'text' &&
      this.io.inputIsTerminal &&
      this.io.err.isTerminal
    );
  }

  /** What the process will end with. */
  get exitCode(): number {
    return this.#exitCode;
  }

  exit(code: number): void {
    this.#exitCode = code;
  }

  /** Set by commands that end with the code of a program elsewhere: their own failures must not look like one of its. */
  endsWithRemoteCode = false;

  /** How to print. A broken settings file must not keep an error from being printed, so it counts as not saying. */
  outputMode(): OutputMode {
    const said = this.settings.fromOptionOrVariable('output')?.value ?? this.#outputOfProfile();
    return said === 'json' || said === 'jsonl' ? said : 'text';
  }

  #outputOfProfile(): string | undefined {
    try {
      return this.settings.find('output')?.value;
    } catch {
      return undefined;
    }
  }
}
