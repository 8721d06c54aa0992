/** `ailsd config`: settings of this user, by profile, and where each value in force comes from. */
import { Argument } from 'commander';
import { AilsdError } from '../../protocol/errors.js';
import { columns } from '../columns.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { nearest } from '../nearest.js';
import { configPath, DEFAULT_PROFILE, parseProfileName } from '../settings/config-file.js';
import type { Found, Origin } from '../settings/settings.js';
import {
  isSettingName,
  parseSetting,
  SETTING_NAMES,
  type SettingName,
  setting,
} from '../settings/table.js';

export function configCommand(context: Context): Command {
  const command = new Command('config')
    .description('read and change settings')
    .example('ailsd config set url https://ailsd.example.com', 'say which server to talk to')
    .example('ailsd config list', 'what is in force, and where it comes from');
  const parts = [getCommand, setCommand, unsetCommand, listCommand, profilesCommand, pathCommand];
  for (const part of parts) command.addCommand(part(context));
  return command;
}

const KEYS = [...SETTING_NAMES, 'profile'];

const KEY_NOTES: readonly (readonly [string, string])[] = [
  ...SETTING_NAMES.map((name): [string, string] => {
    const { summary, choices } = setting(name);
    return [name, choices === undefined ? summary : `${summary}: ${choices.join(', ')}`];
  }),
  ['profile', 'which profile is in use when none is named'],
];

function getCommand(context: Context): Command {
  return keyArgument(new Command('get'))
    .description('print the value of a setting that is in force')
    .example('ailsd config get url', 'the server')
    .action((key: string) => runGet(context, parseKey(key)));
}

function setCommand(context: Context): Command {
  return keyArgument(new Command('set'))
    .argument('<value>', 'its new value')
    .description('keep a setting in the profile')
    .example('ailsd config set thread thr_demo', 'the thread meant when none is named')
    .example(
      'ailsd config set url https://staging.example.com --profile staging',
      'in another profile',
    )
    .example('ailsd config set profile staging', 'make that profile the one in use')
    .action((key: string, value: string) => runSet(context, parseKey(key), value));
}

function unsetCommand(context: Context): Command {
  return keyArgument(new Command('unset'))
    .description('remove a setting from the profile')
    .example('ailsd config unset thread', 'no default thread any more')
    .action((key: string) => runSet(context, parseKey(key), undefined));
}

function listCommand(context: Context): Command {
  return new Command('list')
    .description('print all settings in force, and where each comes from')
    .example('ailsd config list --json', 'for a script')
    .action(() => runList(context));
}

function profilesCommand(context: Context): Command {
  return new Command('profiles')
    .description('print the profiles there are, and which is in use')
    .example('ailsd config profiles', 'their names; a star marks the one in use')
    .action(() => runProfiles(context));
}

function pathCommand(context: Context): Command {
  return new Command('path')
    .description('print where settings are kept')
    .example('ailsd config path', 'the file')
    .action(() => runPath(context));
}

function runGet({ settings, output }: Context, key: Key): void {
  const found = key === 'profile' ? settings.profile : settings.find(key);
  if (found === undefined) {
    throw new AilsdError('NOT_FOUND', `${key} is not set`, {
      hint: `set it with \`ailsd config set ${key} VALUE\``,
    });
  }
  output.result(row(key, found), () => escapeText(found.value));
}

async function runSet(context: Context, key: Key, value: string | undefined): Promise<void> {
  if (key === 'profile') return runSetProfile(context, value);
  const { settings, output } = context;
  const profile = settings.profile.value;
  // A new profile is made by setting something in it; there is nothing to remove from one that is not there.
  if (value === undefined) settings.file.require(profile);
  const parsed = value === undefined ? undefined : parseSetting(key, value, 'the command line');
  await settings.file.set(profile, key, parsed);
  output.notice(
    parsed === undefined
      ? `${key} is not set any more in profile ${profile}`
      : `${key} is ${parsed} in profile ${profile}`,
  );
  const winner = settings.fromOptionOrVariable(key)?.origin;
  if (winner?.kind === 'variable') output.notice(`${winner.name} is set and wins over it`);
}

async function runSetProfile(
  { settings, output }: Context,
  profile: string | undefined,
): Promise<void> {
  if (profile !== undefined) settings.file.require(parseProfileName(profile));
  await settings.file.setCurrentProfile(profile);
  output.notice(`profile ${profile ?? DEFAULT_PROFILE} is in use`);
}

function runList({ settings, output, style }: Context): void {
  const rows = [
    row('profile', settings.profile),
    ...SETTING_NAMES.map((name) => row(name, settings.find(name))),
  ];
  output.list(rows, () =>
    columns(
      rows.map(({ key, value, source, source_name }) => [
        key,
        value === null ? style.dim('(not set)') : escapeText(value),
        style.dim(escapeText([source, source_name].filter((word) => word !== null).join(' '))),
      ]),
    ),
  );
}

function runProfiles({ settings, output }: Context): void {
  const current = settings.profile.value;
  const names = [...new Set([DEFAULT_PROFILE, ...settings.file.profiles])];
  const rows = names.map((name) => ({ name, in_use: name === current }));
  output.list(rows, () =>
    rows.map((one) => `${one.in_use ? '*' : ' '} ${escapeText(one.name)}`).join('\n'),
  );
}

function runPath({ environment, output }: Context): void {
  const path = configPath(environment);
  output.result({ path }, () => escapeText(path));
}

type Key = SettingName | 'profile';

function parseKey(text: string): Key {
  const key = text.replaceAll('-', '_');
  if (key === 'profile' || isSettingName(key)) return key;
  const near = nearest(key, KEYS);
  throw new AilsdError('USAGE', `there is no setting '${text}'`, {
    hint: near === undefined ? `settings are ${KEYS.join(', ')}` : `did you mean ${near}?`,
  });
}

function keyArgument(command: Command): Command {
  const argument = new Argument('<key>', 'which setting');
  // For the completions alone: `parseKey` also takes dashes, and suggests.
  argument.argChoices = KEYS;
  return command.addArgument(argument).note('Settings:', KEY_NOTES);
}

interface Row {
  readonly key: string;
  readonly value: string | null;
  /** option, variable, project, profile, file or default; null where nothing says. */
  readonly source: Origin['kind'] | null;
  /** Which option, variable, file or profile it was. */
  readonly source_name: string | null;
}

function row(key: string, found: Found | undefined): Row {
  if (found === undefined) return { key, value: null, source: null, source_name: null };
  const { value, origin } = found;
  return { key, value, source: origin.kind, source_name: nameOf(origin) };
}

function nameOf(origin: Origin): string | null {
  switch (origin.kind) {
    case 'option':
    case 'variable':
    case 'profile':
      return origin.name;
    case 'project':
    case 'file':
      return origin.path;
    case 'default':
      return null;
  }
}
