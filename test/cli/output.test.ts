import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/command-table.js';
import { proves } from '../requirements.js';
import { ailsd, BIN, cleanEnvironment, runProgram, temporaryFolder } from '../support/cli.js';
import { ailsdInPty } from '../support/pty.js';

/** A command line of each command, and whether it prints something. */
const LINES: Record<string, string[][]> = {
  // These need a server: their own tests look at what they print.
  login: [],
  whoami: [],
  token: [],
  api: [],
  // Its stdout is the terminal of somebody else's program: its own test looks at what it says.
  attach: [],
  // It serves until it is told to end: so does its own test.
  dev: [],
  // What they print is somebody else's program's, or a file's.
  exec: [],
  run: [],
  code: [],
  cp: [],
  files: [['files']],
  job: [['job']],
  shell: [['shell']],
  session: [['session']],
  sandbox: [['sandbox']],
  share: [['share']],
  admin: [['admin'], ['admin', 'sandboxes']],
  logout: [['logout', '--all']],
  server: [['server']],
  config: [
    ['config', 'list'],
    ['config', 'profiles'],
    ['config', 'get', 'output'],
    ['config', 'path'],
    ['config'],
  ],
  doctor: [['doctor']],
  completion: [
    ['completion', 'bash'],
    ['completion', 'zsh'],
    ['completion', 'fish'],
  ],
  version: [['version'], ['--version']],
  help: [
    ['help'],
    ['help', 'exit-codes'],
    ['help', 'environment'],
    ['help', 'json'],
    ['help', 'config', 'set'],
    ['--help'],
  ],
};

describe('output', () => {
  it(
    proves(
      'every command prints one JSON document with --json, and objects by line with jsonl',
      'CM-06',
    ),
    async () => {
      expect(Object.keys(LINES).sort()).toEqual(COMMANDS.map((command) => command.name).sort());
      const lines = Object.values(LINES).flat();
      const results = await Promise.all(
        lines.map(async (args) => ({ args, ...(await ailsd([...args, '--json'])) })),
      );
      for (const { args, stdout, stderr, code } of results) {
        expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
        expect(JSON.parse(stdout), args.join(' ')).toBeTypeOf('object');
      }
      const { stdout } = await ailsd(['help', 'exit-codes', '-o', 'jsonl']);
      for (const line of stdout.trimEnd().split('\n'))
        expect(JSON.parse(line)).toHaveProperty('code');
    },
  );

  it(proves('a reader that goes away early is no error', 'CM-08'), async () => {
    for (const command of [
      'version',
      'help exit-codes',
      '--help',
      '--version',
      'completion zsh',
      'config list',
    ]) {
      const script = `set -o pipefail; "$0" "$1" ${command} | head -c 1 >/dev/null`;
      const { code, stderr } = await runProgram('bash', ['-c', script, process.execPath, BIN]);
      expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' });
      const closed = `"$0" "$1" ${command} >&-`;
      const result = await runProgram('bash', ['-c', closed, process.execPath, BIN]);
      expect({ command, code: result.code, stderr: result.stderr }).toEqual({
        command,
        code: 0,
        stderr: '',
      });
      const both = `"$0" "$1" ${command} 1>&- 2>&- 0<&-`;
      expect((await runProgram('bash', ['-c', both, process.execPath, BIN])).code).toBe(0);
    }
  });

  it(proves('a full disk behind stdout is an error with a hint', 'CM-08'), async () => {
    for (const args of [['help', 'exit-codes'], ['--version'], ['--help']]) {
      const child = spawn(process.execPath, [BIN, ...args], {
        env: cleanEnvironment(),
        stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
      });
      let stderr = '';
      child.stderr?.on('data', (chunk) => {
        stderr += chunk;
      });
      const code = await new Promise((resolve) => child.on('close', resolve));
      expect({ args, code, stderr }).toEqual({
        args,
        code: 1,
        stderr:
          'ailsd: OUTPUT_FAILED: standard output cannot be written (ENOSPC)\n  hint: check where standard output goes: its disk may be full\n',
      });
    }
  });

  it(
    proves('a stderr that nobody can read changes neither result nor exit code', 'CM-08'),
    async () => {
      const run = (line: string) =>
        runProgram('bash', ['-c', `"$0" "$1" ${line}`, process.execPath, BIN]);
      expect((await run('config set url ftp://x 2>/dev/full')).code).toBe(2);
      expect((await run('config get nope 2> >(exec true)')).code).toBe(2);
      expect((await run('version >/dev/full 2>/dev/full')).code).toBe(1);
      expect(await run('version --debug 2>/dev/full')).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^ailsd/),
      });
    },
  );

  it('a slow reader gets every byte', async () => {
    const script =
      '"$0" "$1" completion zsh | (sleep 0.2; cat) | sha256sum; "$0" "$1" completion zsh | sha256sum';
    const { stdout } = await runProgram('bash', ['-c', script, process.execPath, BIN]);
    const [slow, fast] = stdout.split('\n');
    expect(slow).toBe(fast);
  });

  it(
    proves('colour only on a terminal, and never with NO_COLOR or TERM=dumb', 'CM-09'),
    async () => {
      const coloured = async (env: Record<string, string>) => {
        using program = ailsdInPty(['--help'], { env });
        await program.ended();
        return program.raw().includes('\u001b[');
      };
      expect(await coloured({})).toBe(true);
      expect(await coloured({ NO_COLOR: '1' })).toBe(false);
      expect(await coloured({ TERM: 'dumb' })).toBe(false);
      expect((await ailsd(['--help'])).stdout).not.toContain('\u001b[');
      expect((await ailsd(['--help'], { env: { FORCE_COLOR: '1' } })).stdout).toContain('\u001b[');
      expect(
        (await ailsd(['doctor', '--json'], { env: { FORCE_COLOR: '1' } })).stdout,
      ).not.toContain('\u001b[');
    },
  );

  it(proves('help is wrapped to the terminal it is printed on', 'CM-09'), async () => {
    for (const columns of [45, 60, 100]) {
      using program = ailsdInPty(['config', 'get', '--help'], { columns, env: { NO_COLOR: '1' } });
      expect(await program.ended()).toBe(0);
      const body = program.raw().split('Examples:')[0] ?? '';
      const longest = Math.max(...body.split('\r\n').map((line) => line.length));
      expect(longest).toBeLessThanOrEqual(columns);
    }
  });

  it('the working folder may be gone', async () => {
    using folder = temporaryFolder();
    const script = 'mkdir "$2/x" && cd "$2/x" && rmdir "$2/x" && "$0" "$1" version';
    const { code, stdout } = await runProgram('bash', [
      '-c',
      script,
      process.execPath,
      BIN,
      folder.path,
    ]);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ailsd /) });
  });
});
