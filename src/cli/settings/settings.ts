/** One answer per setting: option, then variable, then `.ailsd.json`, then profile, then default; and which it was. */
import { AilsdError } from '../../protocol/errors.js';
import type { Environment } from '../config.js';
import { ConfigFile, PROFILE_PATTERN } from './config-file.js';
import { findProjectFile, type ProjectFile } from './project-file.js';
import { parseSetting, type SettingName, setting } from './table.js';

export type Origin =
  | { readonly kind: 'option'; readonly name: string }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'project'; readonly path: string }
  | { readonly kind: 'profile'; readonly name: string }
  | { readonly kind: 'default' };

export interface Found {
  readonly value: string;
  readonly origin: Origin;
}

/** What the command line itself said, by setting; absent where it said nothing. */
export type GivenOptions = Readonly<Partial<Record<SettingName | 'profile', string | undefined>>>;

export class Settings {
  readonly #environment: Environment;
  readonly #options: GivenOptions;
  readonly #notice: (text: string) => void;
  #file: ConfigFile | undefined;
  #project: { readonly found: ProjectFile | undefined } | undefined;

  constructor(environment: Environment, options: GivenOptions, notice: (text: string) => void) {
    this.#environment = environment;
    this.#options = options;
    this.#notice = notice;
  }

  /** Read once, when first needed: a command that asks for nothing is not stopped by a broken file. */
  get file(): ConfigFile {
    this.#file ??= ConfigFile.open(this.#environment);
    return this.#file;
  }

  get profile(): Found {
    const option = this.#options.profile;
    if (option !== undefined)
      return this.#namedProfile(option, { kind: 'option', name: '--profile' });
    const variable = this.#environment.variable('AILSD_PROFILE');
    if (variable !== undefined) {
      return this.#namedProfile(variable, { kind: 'variable', name: 'AILSD_PROFILE' });
    }
    return { value: this.file.currentProfile, origin: { kind: 'default' } };
  }

  find(name: SettingName): Found | undefined {
    const said = this.fromOptionOrVariable(name);
    if (said !== undefined) return said;

    const project = setting(name).projectMaySet ? this.#projectFile() : undefined;
    const ofProject = project?.get(name);
    if (project !== undefined && ofProject !== undefined) {
      if (name === 'url') this.#checkKnown(ofProject, project.path);
      return { value: ofProject, origin: { kind: 'project', path: project.path } };
    }

    const { value: profile, origin } = this.profile;
    if (origin.kind !== 'default') this.file.require(profile);
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
    const { variable } = setting(name);
    const value = this.#environment.variable(variable);
    if (value === undefined) return undefined;
    return {
      value: parseSetting(name, value, variable),
      origin: { kind: 'variable', name: variable },
    };
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

  #namedProfile(value: string, origin: Origin): Found {
    if (PROFILE_PATTERN.test(value)) return { value, origin };
    throw new AilsdError('CONFIG_INVALID', `that is not a profile name: ${value}`, {
      hint: 'a profile name is 1 to 64 of A-Z a-z 0-9 . _ -, and begins with a letter or digit',
    });
  }
}
