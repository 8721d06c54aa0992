import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { proves } from '../requirements.js';
import { ailsd } from '../support/cli.js';

const FOLDER = join(import.meta.dirname, 'goldens', 'help');
const names = readdirSync(FOLDER).map((file) => file.replace(/\.txt$/, ''));

describe('help', () => {
  it.each(names)(
    proves('%s --help is the golden page, which has an example', 'CM-13'),
    async (name) => {
      const golden = readFileSync(join(FOLDER, `${name}.txt`), 'utf8');
      const words = name.split('.').slice(1);
      const asked = await ailsd([...words, '--help']);
      expect(asked).toMatchObject({ code: 0, stdout: golden, stderr: '' });
      expect((await ailsd(['help', ...words])).stdout).toBe(golden);
      expect(golden).toMatch(/\nExamples:\n {2}# .+\n {2}.*ailsd/);
    },
  );

  it(proves('every command that exists has a page', 'CM-13'), async () => {
    const tree = async (path: string[]): Promise<string[]> => {
      const { stdout } = await ailsd([...path, '--help', '--json']);
      const { commands } = JSON.parse(stdout);
      const below = await Promise.all(
        commands.map((one: { name: string }) => tree([...path, one.name])),
      );
      return [['ailsd', ...path].join('.'), ...below.flat()];
    };
    expect((await tree([])).sort()).toEqual([...names].sort());
  });

  it('help environment has a row for every variable of ours that the source asks for', async () => {
    const root = join(import.meta.dirname, '..', '..', 'src');
    const sources = ['cli', 'client'].flatMap((room) =>
      readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => readFileSync(join(root, room, name), 'utf8')),
    );
    const asked = sources.flatMap((text) => text.match(/(?<=')AILSD_[A-Z_]+(?=')/g) ?? []);
    const { items } = JSON.parse((await ailsd(['help', 'environment', '--json'])).stdout);
    const told: string[] = items.map((row: { variable: string }) => row.variable);
    expect(asked.length).toBeGreaterThan(20);
    expect([...new Set(asked)].filter((name) => !told.includes(name))).toEqual([]);
  });

  it('a command without its subcommand prints its help', async () => {
    const bare = await ailsd(['config']);
    expect(bare).toMatchObject({ code: 0, stderr: '' });
    expect(bare.stdout).toBe((await ailsd(['config', '--help'])).stdout);
    expect((await ailsd([])).stdout).toBe((await ailsd(['--help'])).stdout);
  });

  it('every option is described with its variable when asked as data', async () => {
    const { options } = JSON.parse((await ailsd(['version', '--help', '--json'])).stdout);
    const variables = options.map((option: { long: string; variable: string }) => [
      option.long,
      option.variable,
    ]);
    expect(Object.fromEntries(variables)).toMatchObject({
      '--no-input': 'AILSD_NO_INPUT',
      '--profile': 'AILSD_PROFILE',
      '--help': null,
    });
  });
});
