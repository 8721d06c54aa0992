/** Ignore rules mean what git means by them: asked of git itself, on a real tree. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IgnoreRules } from '../../../src/sync/core/ignore-rules.js';
import { newSeed, seededRandom } from '../../support/random.js';

const FILES = [
  'a',
  'b.ts',
  'ab',
  'a b',
  'x ',
  '#c',
  '!d',
  'd/a',
  'd/b.ts',
  'd/e/a',
  'd/e/f/b.ts',
  'e/d/a',
  '[z]',
  'ünïcode',
  'd/.x',
];
const FOLDERS = ['d', 'd/e', 'd/e/f', 'e', 'e/d'];
const PATTERNS = [
  'a',
  '/a',
  'a/',
  'd',
  'd/',
  '/d/',
  'd/e',
  '/d/e',
  'd/*',
  'd/**',
  '**/a',
  '**/d',
  'd/**/a',
  'd/**/b.ts',
  '**',
  '*',
  '/*',
  '/**',
  '**/*.ts',
  '*.ts',
  '?',
  '??',
  '[a-d]',
  '[!a]',
  '[^a]*',
  '[[:alpha:]]',
  '[]z]',
  '\\[z]',
  '[',
  'a\\',
  '\\#c',
  '#c',
  '\\!d',
  '!d',
  '!a',
  '!d/a',
  '!/d',
  'x\\ ',
  'x ',
  'a b',
  'a b   ',
  '',
  '/',
  '//',
  'e/d',
  'd/e/',
  'd/**/',
  '**/e/**',
  'd**a',
  'a**',
  '*b',
  '*b*',
  '.x',
  '.*',
  '[a-',
  '[[:nope:]]',
  'ünïcode',
];

describe('beside git', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'ailsd-ignore-'));
    for (const path of FILES) {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), '');
    }
    execFileSync('git', ['init', '-q'], { cwd: dir });
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  it('every pattern by itself ignores what git ignores by it', () => {
    for (const pattern of PATTERNS) expectAsGit(dir, { '': pattern }, JSON.stringify(pattern));
  });

  it('several patterns in several folders ignore what git ignores by them', () => {
    const seed = newSeed();
    const random = seededRandom(seed);
    const pick = () => PATTERNS[Math.floor(random() * PATTERNS.length)] ?? '';
    const some = () => Array.from({ length: 1 + Math.floor(random() * 4) }, pick).join('\n');
    const rounds = process.env['AILSD_SOAK'] === '1' ? 2_000 : 60;
    for (let round = 0; round < rounds; round++) {
      expectAsGit(dir, { '': some(), d: some(), 'd/e': some() }, `seed ${seed} round ${round}`);
    }
  });
});

describe('the rules', () => {
  it('ask the command line before .ailsdignore, and that before .gitignore', () => {
    const rules = IgnoreRules.create(
      { patterns: ['!kept'] },
      { ailsdignore: 'kept\n!wanted\n', gitignore: 'wanted\nother\n' },
    );
    expect(['kept', 'wanted', 'other', 'else'].map((name) => rules.ignores(name, false))).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });

  it('leave out .git under every spelling a disk may take for it', () => {
    const rules = IgnoreRules.create({ patterns: ['!.git'] }, {});
    for (const name of [
      '.git',
      '.GIT',
      '.git ',
      '.git.',
      'git~1',
      '.g\u200cit',
      '.git::$INDEX_ALLOCATION',
    ]) {
      expect(rules.ignores(name, true), name).toBe(true);
    }
    expect(rules.ignores('.gitignore', false)).toBe(false);
    expect(rules.enter('sub', {}).ignores('.git', false)).toBe(true);
  });

  it('take .git along when asked, without hooks, settings and what leads elsewhere', () => {
    const rules = IgnoreRules.create({ includeGit: true }, {});
    expect(rules.ignores('.git', true)).toBe(false);
    expect(rules.ignores('.git', false)).toBe(true);
    const git = rules.enter('.git', {});
    for (const name of ['hooks', 'Hooks', 'config', 'CONFIG', 'config.worktree', 'commondir']) {
      expect(git.ignores(name, name === 'hooks'), name).toBe(true);
    }
    expect(git.ignores('HEAD', false)).toBe(false);
    expect(git.enter('modules', {}).enter('x', {}).ignores('hooks', true)).toBe(true);
    expect(git.enter('worktrees', {}).enter('x', {}).ignores('config.worktree', false)).toBe(true);
    expect(git.enter('refs', {}).enter('heads', {}).ignores('hooks', true)).toBe(false);
  });

  it('take ? for a character, of however many bytes', () => {
    const rules = IgnoreRules.create({}, { gitignore: '?' });
    expect(rules.ignores('é', false)).toBe(true);
    expect(rules.ignores('ab', false)).toBe(false);
  });

  it('are not slowed down by a pattern made to be slow', () => {
    const rules = IgnoreRules.create(
      {},
      { gitignore: `${'*a'.repeat(500)}b\n${'**/a/'.repeat(300)}b` },
    );
    const begin = performance.now();
    expect(rules.ignores('a'.repeat(255), false)).toBe(false);
    expect(performance.now() - begin).toBeLessThan(500);
  });

  it('refuse an ignore file that is too long', () => {
    const gitignore = 'x\n'.repeat(200_000);
    expect(() => IgnoreRules.create({}, { gitignore })).toThrow(RangeError);
  });
});

function expectAsGit(dir: string, files: Readonly<Record<string, string>>, what: string): void {
  for (const [folder, text] of Object.entries(files))
    writeFileSync(join(dir, folder, '.gitignore'), `${text}\n`);
  const all = [...FILES, ...FOLDERS].sort();
  expect(ignoredByUs(all, files), what).toEqual(ignoredByGit(dir, all));
  for (const folder of Object.keys(files)) rmSync(join(dir, folder, '.gitignore'));
}

function ignoredByGit(dir: string, paths: readonly string[]): string[] {
  const args = [
    '-c',
    'core.excludesFile=/dev/null',
    'check-ignore',
    '--no-index',
    '-v',
    '-n',
    '-z',
    '--stdin',
  ];
  let out: string;
  try {
    out = execFileSync('git', args, {
      cwd: dir,
      input: paths.join('\0'),
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'ignore'],
    });
  } catch (error) {
    // 1 says that none of them is ignored.
    out = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
  }
  const fields = out.split('\0');
  const ignored: string[] = [];
  for (let at = 0; at + 3 < fields.length; at += 4) {
    const pattern = fields[at + 2] ?? '';
    if (pattern !== '' && !pattern.startsWith('!')) ignored.push(fields[at + 3] ?? '');
  }
  return ignored;
}

function ignoredByUs(paths: readonly string[], files: Readonly<Record<string, string>>): string[] {
  return paths.filter((path) => {
    const steps = path.split('/');
    let rules = IgnoreRules.create({}, { gitignore: files[''] ?? '' });
    for (const [at, name] of steps.entries()) {
      const isFolder = at < steps.length - 1 || FOLDERS.includes(path);
      if (rules.ignores(name, isFolder)) return true;
      rules = rules.enter(name, { gitignore: files[steps.slice(0, at + 1).join('/')] ?? '' });
    }
    return false;
  });
}
