/** One answer per setting: option, then variable, then `.ailsd.json`, then profile, then default; and which it was. */
import { AilsdError } from '../../protocol/errors.js';
import { type Environment, isOn } from '../config.js';
import { ConfigFile, configPath, DEFAULT_PROFILE, parseProfileName } from './config-file.js';
import { findProjectFile, type ProjectFile } from './project-file.js';
import { parseSetting, type SettingName, setting } from './table.js';

export type Origin =
  | { readonly kind: 'option'; readonly name: string }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'project'; readonly path: string }
  | { readonly kind: 'profile'; readonly name: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'default' };

export interface Found {
  readonly value: string;
  readonly origin: Origin;
}

/** What the command line itself said, by setting; absent where it said nothing. */
export type GivenOptions = Readonly<Partial<Record<SettingName | 'profile', string | undefined>>>;

/** Where to say what a reader should know, and what only somebody debugging wants to. */
export interface Talk {
  notice(text: string): void;
  trace(text: string): void;
}

export class Settings {
  readonly #environment: Environment;
  readonly #options: GivenOptions;
  readonly #notice: Talk['notice'];
  readonly #trace: Talk['trace'];
  #mayBeNew = false;
  #file: ConfigFile | undefined;
  #project: { readonly found: ProjectFile | undefined } | undefined;

  constructor(environment: Environment, options: GivenOptions, talk: Talk) {
    this.#environment = environment;
    this.#options = options;
    this.#notice = talk.notice;
    this.#trace = talk.trace;
  }

  /** Read once, when first needed: a command that asks for nothing is not stopped by a broken file. */
  get file(): ConfigFile {
    this.#file ??= ConfigFile.open(this.#environment);
    return this.#file;
  }

  get profile(): Found {
    const option = this.#options.profile;
    if (option !== undefined)
      return { value: parseProfileName(option), origin: { kind: 'option', name: '--profile' } };
    const variable = this.#environment.variable('AILSD_PROFILE');
    if (variable !== undefined) {
      return {
        value: parseProfileName(variable),
        origin: { kind: 'variable', name: 'AILSD_PROFILE' },
      };
    }
    const value = this.file.currentProfile;
    if (value === undefined) return { value: DEFAULT_PROFILE, origin: { kind: 'default' } };
    return { value, origin: { kind: 'file', path: configPath(this.#environment) } };
  }

  /**
   * Where the command line itself names both a profile that is not there and a server: from here on it counts as one
   * without settings, and what is given makes it, to be called once the server has proved to be of use.
   */
  newProfile(): (() => Promise<string>) | undefined {
    const { profile } = this.#options;
    const url = this.fromOptionOrVariable('url');
    if (profile === undefined || url?.origin.kind !== 'option') return undefined;
    const name = this.profile.value;
    if (name === DEFAULT_PROFILE || this.file.profiles.includes(name)) return undefined;
    this.#mayBeNew = true;
    return async () => {
      await this.file.set(name, 'url', url.value);
      return name;
    };
  }

  find(name: SettingName): Found | undefined {
    const found = this.#find(name);
    if (found !== undefined)
      this.#trace(`${name} is from ${Object.values(found.origin).join(' ')}`);
    return found;
  }

  #find(name: SettingName): Found | undefined {
    const said = this.fromOptionOrVariable(name);
    if (said !== undefined) return said;

    const project = setting(name).projectMaySet ? this.#projectFile() : undefined;
    const ofProject = project?.get(name);
    if (project !== undefined && ofProject !== undefined) {
      if (name === 'url') this.#checkKnown(ofProject, project.path);
      return { value: ofProject, origin: { kind: 'project', path: project.path } };
    }

    const { value: profile, origin } = this.profile;
    if (origin.kind !== 'default' && !this.#mayBeNew) this.file.require(profile);
    const ofProfile = this.file.get(profile, name);
    if (ofProfile !== undefined) {
      return { value: ofProfile, origin: { kind: 'profile', name: profile } };
    }

    const { fallback } = setting(name);
    return fallback === undefined ? undefined : { value: fallback, origin: { kind: 'default' } };
  }

  /** The sources that need no file. */
  fromOptionOrVariable(name: SettingName): Found | undefined {
    const option = this.#options[name];
    if (option !== undefined) {
      const flag = `--${name.replaceAll('_', '-')}`;
      return { value: parseSetting(name, option, flag), origin: { kind: 'option', name: flag } };
    }
    const { variable, flagVariable } = setting(name);
    const value = this.#environment.variable(variable);
    if (value !== undefined) {
      const parsed = parseSetting(name, value, variable);
      return { value: parsed, origin: { kind: 'variable', name: variable } };
    }
    if (flagVariable === undefined || !isOn(this.#environment.variable(flagVariable.name)))
      return undefined;
    return { value: flagVariable.means, origin: { kind: 'variable', name: flagVariable.name } };
  }

  /** A repository may choose among the servers its reader already uses; it can't introduce one. */
  #checkKnown(url: string, path: string): void {
    if (this.file.knownUrls.includes(url)) return;
    throw new AilsdError('CONFIG_INVALID', `${path} names a server you have not used: ${url}`, {
      hint: `if you trust it: \`ailsd config set url ${url} --profile NAME\`, or set AILSD_URL`,
      details: { setting: 'url', source: path },
    });
  }

  #projectFile(): ProjectFile | undefined {
    this.#project ??= { found: findProjectFile(this.#environment, this.#notice) };
    return this.#project.found;
  }
}
