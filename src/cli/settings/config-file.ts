/** The user's own settings: `config.json`, profiles by name, and which of them is meant when none is named. */
import { join } from 'node:path';
import { AilsdError } from '../../protocol/errors.js';
import type { Environment } from '../config.js';
import { nearest } from '../nearest.js';
import { isJsonObject, type JsonObject, readJsonFile, unreadable } from './json-file.js';
import { parseSetting, type SettingName } from './table.js';

export const DEFAULT_PROFILE = 'default';
const PROFILE_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function parseProfileName(text: string): string {
  if (PROFILE_PATTERN.test(text)) return text;
  throw new AilsdError('CONFIG_INVALID', `that is not a profile name: ${text}`, {
    hint: 'a profile name is 1 to 64 of A-Z a-z 0-9 . _ -, and begins with a letter or digit',
  });
}

/** Where it is, or would be. */
export function configPath(environment: Environment): string {
  if (environment.configFolder !== undefined) return join(environment.configFolder, 'config.json');
  throw new AilsdError('CONFIG_INVALID', 'there is no home folder to keep settings in', {
    hint: 'set AILSD_CONFIG_DIR to a folder of your own',
  });
}

/** Whoever can write it decides where credentials go: only we ourselves and root. */
function isTrusted(environment: Environment): (owner: number) => boolean {
  const { userId } = environment;
  return (owner) => userId === undefined || owner === userId || owner === 0;
}

export class ConfigFile {
  readonly #environment: Environment;
  readonly #document: JsonObject;

  static open(environment: Environment): ConfigFile {
    if (environment.configFolder === undefined) return new ConfigFile(environment, {});
    const path = configPath(environment);
    const read = readJsonFile(path, isTrusted(environment));
    if (read.kind === 'foreign') {
      throw new AilsdError(
        'CONFIG_INVALID',
        `${path} belongs to another user (uid ${read.owner})`,
        {
          hint: 'set AILSD_CONFIG_DIR to a folder of your own',
        },
      );
    }
    return new ConfigFile(environment, read.kind === 'read' ? read.value : {});
  }

  private constructor(environment: Environment, document: JsonObject) {
    this.#environment = environment;
    this.#document = document;
  }

  /** The profile the file puts in use; absent where it does not say. */
  get currentProfile(): string | undefined {
    if (!Object.hasOwn(this.#document, 'profile')) return undefined;
    const named = this.#document['profile'];
    if (typeof named === 'string' && PROFILE_PATTERN.test(named)) return named;
    throw unreadable(configPath(this.#environment), 'profile is not the name of one');
  }

  get profiles(): readonly string[] {
    return Object.keys(this.#profiles(this.#document));
  }

  /** A value of a profile, checked; absent where the profile does not say. */
  get(profile: string, name: SettingName): string | undefined {
    const settings = this.#profile(this.#document, profile);
    if (!Object.hasOwn(settings, name)) return undefined;
    return parseSetting(
      name,
      settings[name],
      `profile ${profile} in ${configPath(this.#environment)}`,
    );
  }

  /** Servers the user has named: what a repository may choose among. */
  get knownUrls(): readonly string[] {
    return this.profiles.flatMap((profile) => this.get(profile, 'url') ?? []);
  }

  /** A profile that is asked for by name has to exist. */
  require(profile: string): void {
    if (profile === DEFAULT_PROFILE || this.profiles.includes(profile)) return;
    const near = nearest(profile, this.profiles);
    throw new AilsdError('CONFIG_INVALID', `there is no profile ${profile}`, {
      hint:
        near === undefined
          ? `make it with \`ailsd config set url URL --profile ${profile}\``
          : `did you mean ${near}?`,
    });
  }

  /** A profile whose last setting goes is gone too. */
  async set(profile: string, name: SettingName, value: string | undefined): Promise<void> {
    await this.#change((document) => {
      const { [name]: _, ...others } = this.#profile(document, profile);
      const changed = value === undefined ? others : { ...others, [name]: value };
      const { [profile]: __, ...rest } = this.#profiles(document);
      const isEmpty = Object.keys(changed).length === 0;
      return { ...document, profiles: isEmpty ? rest : { ...rest, [profile]: changed } };
    });
  }

  async setCurrentProfile(profile: string | undefined): Promise<void> {
    await this.#change(({ profile: _, ...others }) =>
      profile === undefined ? others : { profile, ...others },
    );
  }

  /** Unknown keys are somebody's (a newer version's, say) and are kept. */
  async #change(change: (before: JsonObject) => JsonObject): Promise<void> {
    const { changeJsonFile } = await import('./change-json-file.js');
    await changeJsonFile(configPath(this.#environment), isTrusted(this.#environment), change);
  }

  #profiles(document: JsonObject): JsonObject {
    return this.#object(document, 'profiles', 'profiles');
  }

  #profile(document: JsonObject, name: string): JsonObject {
    return this.#object(this.#profiles(document), name, `profile ${name}`);
  }

  #object(parent: JsonObject, key: string, what: string): JsonObject {
    if (!Object.hasOwn(parent, key)) return {};
    const value = parent[key];
    if (isJsonObject(value)) return value;
    throw unreadable(configPath(this.#environment), `${what} is not an object`);
  }
}
