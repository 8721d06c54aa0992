/** What the surroundings say: variables, folders, platform. The one file of the command line that reads the process's own. */
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

export interface Environment {
  /** A variable's value; one that is set to nothing counts as not set. */
  variable(name: string): string | undefined;
  /** The same, but one that is set to nothing is the empty text: a secret that a CI job did not get. */
  exactVariable(name: string): string | undefined;
  readonly platform: NodeJS.Platform;
  /** Absent where the folder we were started in is gone. */
  readonly workingFolder: string | undefined;
  /** Where settings are kept; absent where there is no home and no variable names a folder. */
  readonly configFolder: string | undefined;
  /** Who we are, for judging whose files we read; absent where the platform has no user ids. */
  readonly userId: number | undefined;
}

export function processEnvironment(): Environment {
  const variable = (name: string): string | undefined => process.env[name] || undefined;
  return {
    variable,
    exactVariable: (name) => process.env[name],
    platform: process.platform,
    get workingFolder() {
      return workingFolder();
    },
    get configFolder() {
      return configFolder(variable, process.platform);
    },
    userId: process.getuid?.(),
  };
}

function configFolder(
  variable: Environment['variable'],
  platform: NodeJS.Platform,
): string | undefined {
  const named = variable('AILSD_CONFIG_DIR');
  if (named !== undefined) return isAbsolute(named) ? named : besideWorkingFolder(named);
  const base = platform === 'win32' ? variable('APPDATA') : variable('XDG_CONFIG_HOME');
  // The XDG specification: a relative path is invalid and is ignored.
  if (base !== undefined && isAbsolute(base)) return join(base, 'ailsd');
  const home = homeFolder(variable);
  return home === undefined ? undefined : join(home, '.config', 'ailsd');
}

function workingFolder(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

function besideWorkingFolder(path: string): string | undefined {
  const folder = workingFolder();
  return folder === undefined ? undefined : resolve(folder, path);
}

/** An account without a home (a bare uid in a container) makes `homedir` throw; that is no error of the user's. */
function homeFolder(variable: Environment['variable']): string | undefined {
  const home = variable('HOME') ?? passwordFileHome();
  return home !== undefined && isAbsolute(home) ? home : undefined;
}

function passwordFileHome(): string | undefined {
  try {
    return homedir() || undefined;
  } catch {
    return undefined;
  }
}

/** Words that switch a yes-or-no variable off; anything else that is set switches it on. */
export function isOn(value: string | undefined): boolean {
  return value !== undefined && !/^(0|false|no|off)$/i.test(value);
}
