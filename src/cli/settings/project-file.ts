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

/** Root may be in anybody's folder, as in a container: what the file may say is harmless enough for that. */
function trusts({ userId }: Environment): (owner: number) => boolean {
  return (owner) => userId === undefined || userId === 0 || owner === userId || owner === 0;
}

/** The nearest one at or above the working folder. One that belongs to another user is told of and passed over. */
export function findProjectFile(
  environment: Environment,
  notice: (text: string) => void,
): ProjectFile | undefined {
  const isTrusted = trusts(environment);
  let folder = environment.workingFolder;
  if (folder === undefined) return undefined;
  for (let depth = 0; depth < MOST_FOLDERS; depth += 1) {
    const path = join(folder, NAME);
    const read = readJsonFile(path, isTrusted);
    if (read.kind === 'foreign') notice(`${path} is ignored: it belongs to uid ${read.owner}`);
    if (read.kind === 'read') {
      const { value } = read;
      return {
        path,
        get: (name) =>
          setting(name).projectMaySet && Object.hasOwn(value, name)
            ? parseSetting(name, value[name], path)
            : undefined,
      };
    }
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
  return undefined;
}
