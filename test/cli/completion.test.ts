import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { proves } from '../requirements.js';
import { ailsd, cleanEnvironment, temporaryFolder } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { programInPty } from '../support/pty.js';

const FOLDER = join(import.meta.dirname, '..', '..', 'completions');

/** What each shell offers for the same unfinished lines. */
const LINES: [string, string[]][] = [
  ['ailsd ver', ['version']],
  ['ailsd co', ['code', 'completion', 'config']],
  ['ailsd config ', ['get', 'list', 'path', 'profiles', 'set', 'unset']],
  ['ailsd help ex', ['exec', 'exit-codes']],
  ['ailsd --profile ', []],
  ['ailsd config set url ', []],
  ['ailsd config get th', ['thread']],
  ['ailsd config set credential_store x', []],
  ['ailsd config set credential_store k', ['keyring']],
  ['ailsd config set output ', ['json', 'jsonl', 'text']],
  ['ailsd config set output json ', []],
  ['ailsd config set output --no', ['--no-input']],
  ['ailsd --profile work config un', ['unset']],
  ['ailsd config list --no', ['--no-input']],
  ['ailsd version -o js', ['json', 'jsonl']],
  ['ailsd completion ', ['bash', 'fish', 'zsh']],
];

describe('completions', () => {
  it('the files are what the command prints', async () => {
    for (const [shell, file] of [
      ['bash', 'ailsd.bash'],
      ['zsh', '_ailsd'],
      ['fish', 'ailsd.fish'],
    ] as const) {
      expect((await ailsd(['completion', shell])).stdout).toBe(
        readFileSync(join(FOLDER, file), 'utf8'),
      );
    }
  });

  it.each(LINES)(proves('bash completes %j', 'CM-12'), (line, expected) => {
    const script = `
      source "$1"
      line=$2
      read -ra COMP_WORDS <<< "$line"
      [[ $line == *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )) COMP_LINE=$line COMP_POINT=\${#line}
      _ailsd
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const out = run('bash', ['--norc', '-c', script, 'bash', join(FOLDER, 'ailsd.bash'), line]);
    expect(words(out)).toEqual(expected);
  });

  it(proves('zsh completes the same lines at a real prompt', 'CM-12'), async (context) => {
    needs('zsh', context);
    using folder = temporaryFolder();
    const found = join(folder.path, 'found');
    // Every match the completion system accepts is also written down.
    const setup = join(folder.path, 'setup.zsh');
    writeFileSync(
      setup,
      `PS1='ready> '
      autoload -Uz compinit && compinit -u -D
      source ${join(FOLDER, '_ailsd')}
      compadd() {
        if [[ " $* " != *' -[OAD] '* && " $* " != *' -A '* && " $* " != *' -O '* && " $* " != *' -D '* ]]; then
          local -a hits
          builtin compadd -A hits "$@"
          print -rl -- $hits >> ${found}
        fi
        builtin compadd "$@"
      }
      finished() { print done >> ${found}; zle kill-buffer }
      zle -N finished && bindkey '^X' finished
      `,
    );
    using shell = programInPty('zsh', ['-f', '-i'], { env: { HOME: folder.path } });
    shell.type(`source ${setup}\r`);
    await shell.shows('ready>');
    for (const [line, expected] of LINES) {
      writeFileSync(found, '');
      shell.type(`${line}\t\u0018`);
      await eventually(() => readFileSync(found, 'utf8').includes('done'), shell.screen);
      const offered = words(readFileSync(found, 'utf8')).filter((word) => word !== 'done');
      expect([line, [...new Set(offered)]]).toEqual([line, expected]);
    }
  });

  it(proves('fish completes the same lines', 'CM-12'), (context) => {
    needs('fish', context);
    const script = 'source $argv[1]; complete -C $argv[2]';
    for (const [line, expected] of LINES) {
      const args = ['--no-config', '-c', script, join(FOLDER, 'ailsd.fish'), line];
      expect([line, words(run('fish', args))]).toEqual([line, expected]);
    }
  });
});

function run(program: string, args: readonly string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', env: cleanEnvironment({ HOME: '/tmp' }) });
}

function words(out: string): string[] {
  return out
    .split('\n')
    .map((line) => line.split('\t')[0]?.trim() ?? '')
    .filter((word) => word !== '')
    .sort();
}

function needs(shell: string, context: TestContext): void {
  if (spawnSync(shell, ['--version']).status !== 0) context.skip(`skipped: no ${shell}`);
}
