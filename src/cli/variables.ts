/** Every option has a variable `AILSD_<OPTION>`: it counts where the command line did not say. */
import type { Command, Option } from 'commander';
import { type Environment, isOn } from './config.js';
import { isGlobalOption } from './global-options.js';

/** `--status-file` is AILSD_STATUS_FILE, `--no-input` is AILSD_NO_INPUT; help has none. */
export function variableOf(option: Option): string | undefined {
  if (option.long === undefined || option.long === null || option.long === '--help')
    return undefined;
  return `AILSD_${option.long.slice(2).replaceAll('-', '_').toUpperCase()}`;
}

export function applyVariables(command: Command, environment: Environment): void {
  for (const option of command.options) {
    // Global options are settings, or may stand elsewhere on the line: they are looked up there.
    if (isGlobalOption(option)) continue;
    const name = option.attributeName();
    const variable = variableOf(option);
    if (variable === undefined || command.getOptionValueSource(name) === 'cli') continue;
    const value = environment.variable(variable);
    if (value === undefined) continue;
    if (option.required || option.optional) {
      const parsed =
        option.parseArg === undefined ? value : parse(command, option, variable, value);
      command.setOptionValueWithSource(name, parsed, 'env');
    } else if (isOn(value)) {
      command.setOptionValueWithSource(name, !option.negate, 'env');
    }
  }
}

function parse(command: Command, option: Option, variable: string, value: string): unknown {
  try {
    return option.parseArg?.(value, undefined);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return command.error(`error: ${variable}=${value} is invalid. ${reason}`, {
      code: 'commander.invalidArgument',
    });
  }
}
