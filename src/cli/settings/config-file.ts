/** The user's own settings: `config.json`, profiles by name, and which of them is meant when none is named. */
import { join } from 'node:path';
import { AilsdError } from '../../protocol/errors.js';
import type { Environment } from '../config.js';
import { nearest } from '../nearest.js';
import { isJsonObject, type JsonObject, readJsonFile, replaceJsonFile } from './json-file.js';
import { parseSetting, type SettingName } from './table.js';

export const DEFAULT_PROFILE = 'default';
export const PROFILE_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Where it is, or would be. */
export function configPath(environment: Environment): string {
  if (environment.configFolder !== undefined) return join(environment.configFolder, 'config.json');
  throw new AilsdError('CONFIG_INVALID', 'there is no home folder to keep settings in', {
    hint: 'set AILSD_CONFIG_DIR to a folder of your own',
  });
}

export class ConfigFile {
  readonly #environment: Environment;
  readonly #document: JsonObject;

  static open(environment: Environment): ConfigFile {
    if (environment.configFolder === undefined) return new ConfigFile(environment, {});
    const path = configPath(environment);
    const read = readJsonFile(path, environment);
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

  /** The profile meant when neither option nor variable names one. */
  get currentProfile(): string {
    const named = this.#document['profile'];
    return typeof named === 'string' && PROFILE_PATTERN.test(named) ? named : DEFAULT_PROFILE;
  }

  get profiles(): readonly string[] {
    return Object.keys(this.#profiles());
  }

  /** A value of a profile, checked; absent where the profile does not say. */
  get(profile: string, name: SettingName): string | undefined {
    const value = this.#profile(profile)[name];
    if (value === undefined) return undefined;
    return parseSetting(
      name,
      String(value),
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

  set(profile: string, name: SettingName, value: string | undefined): void {
    const { [name]: _, ...others } = this.#profile(profile);
    const changed = value === undefined ? others : { ...others, [name]: value };
    this.#replace({ ...this.#document, profiles: { ...this.#profiles(), [profile]: changed } });
  }

  setCurrentProfile(profile: string | undefined): void {
    const { profile: _, ...others } = this.#document;
    this.#replace(profile === undefined ? others : { profile, ...others });
  }

  /** Unknown keys are somebody's (a newer version's, say) and are kept. */
  #replace(document: JsonObject): void {
    replaceJsonFile(configPath(this.#environment), document);
  }

  #profiles(): JsonObject {
    return this.#object(this.#document, 'profiles', 'profiles');
  }

  #profile(name: string): JsonObject {
    return this.#object(this.#profiles(), name, `profile ${name}`);
  }

  #object(parent: JsonObject, key: string, what: string): JsonObject {
    if (!Object.hasOwn(parent, key)) return {};
    const value = parent[key];
    if (isJsonObject(value)) return value;
    throw new AilsdError(
      'CONFIG_INVALID',
      `${configPath(this.#environment)} cannot be used: ${what} is not an object`,
    );
  }
}
