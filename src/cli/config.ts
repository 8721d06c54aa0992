/** What the surroundings say: variables, folders, platform. The one file of the command line that reads the process's own. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

export interface Environment {
  /** A variable's value; one that is set to nothing counts as not set. */
  variable(name: string): string | undefined;
  /** The same, but one that is set to nothing is the empty text: a secret that a CI job did not get. */
  exactVariable(name: string): string | undefined;
  /** From here on what we start, such as a browser, inherits none of our variables; `variable` still knows them. */
  hideFromChildren(): void;
  /** What a program that we start inherits. */
  forChildren(): Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** Absent where the folder we were started in is gone. */
  readonly workingFolder: string | undefined;
  /** Where settings are kept; absent where there is no home and no variable names a folder. */
  readonly configFolder: string | undefined;
  /** Where things are kept that may be lost; absent like `configFolder`. */
  readonly cacheFolder: string | undefined;
  /** Who we are, for judging whose files we read; absent where the platform has no user ids. */
  readonly userId: number | undefined;
}

export function processEnvironment(): Environment {
  const hidden = new Map<string, string>();
  const exactVariable = (name: string): string | undefined => process.env[name] ?? hidden.get(name);
  const variable = (name: string): string | undefined => exactVariable(name) || undefined;
  return {
    variable,
    exactVariable,
    hideFromChildren: () => {
      for (const [name, value] of Object.entries(process.env)) {
        if (value === undefined || !OWN_VARIABLE.test(name)) continue;
        hidden.set(name, value);
        delete process.env[name];
      }
    },
    forChildren: () => ({ ...process.env }),
    platform: process.platform,
    get workingFolder() {
      return workingFolder();
    },
    get configFolder() {
      return configFolder(variable, process.platform);
    },
    get cacheFolder() {
      return cacheFolder(variable, process.platform);
    },
    userId: process.getuid?.(),
  };
}

/** Ours, and what a CI job's identity is got by: any of them may be a secret. */
const OWN_VARIABLE = /^(AILSD_|ACTIONS_ID_TOKEN_)/i;

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

function cacheFolder(
  variable: Environment['variable'],
  platform: NodeJS.Platform,
): string | undefined {
  const named = variable('AILSD_CACHE_DIR');
  if (named !== undefined) return isAbsolute(named) ? named : besideWorkingFolder(named);
  const base = platform === 'win32' ? variable('LOCALAPPDATA') : variable('XDG_CACHE_HOME');
  if (base !== undefined && isAbsolute(base)) {
    return platform === 'win32' ? join(base, 'ailsd', 'cache') : join(base, 'ailsd');
  }
  const home = homeFolder(variable);
  // A home that is not there is not made for the sake of what may be lost.
  return home !== undefined && existsSync(home) ? join(home, '.cache', 'ailsd') : undefined;
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
