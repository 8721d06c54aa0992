/** `.ailsd.json`: what a repository says about itself. Somebody else may have written it, so it may say little. */
import { dirname, join } from 'node:path';
import type { Environment } from '../config.js';
import { readJsonFile } from './json-file.js';
import { parseSetting, type SettingName, setting } from './table.js';

const NAME = '.ailsd.json';
const MOST_FOLDERS = 64;

export interface ProjectFile {
  readonly path: string;
  get(name: SettingName): string | undefined;
}

/** The nearest one at or above the working folder. One that belongs to another user is told of and passed over. */
export function findProjectFile(
  environment: Environment,
  notice: (text: string) => void,
): ProjectFile | undefined {
  let folder = environment.workingFolder;
  for (let depth = 0; depth < MOST_FOLDERS; depth += 1) {
    const path = join(folder, NAME);
    const read = readJsonFile(path, environment);
    if (read.kind === 'foreign') notice(`${path} is ignored: it belongs to uid ${read.owner}`);
    if (read.kind === 'read') {
      const { value } = read;
      return {
        path,
        get: (name) =>
          setting(name).projectMaySet && Object.hasOwn(value, name)
            ? parseSetting(name, String(value[name]), path)
            : undefined,
      };
    }
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
  return undefined;
}
