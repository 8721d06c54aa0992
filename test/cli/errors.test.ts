import { describe, expect, it } from 'vitest';
import { EXIT, EXIT_MEANINGS } from '../../src/cli/exit-codes.js';
import { ERRORS } from '../../src/protocol/errors.js';
import { proves } from '../requirements.js';
import { ailsd, temporaryFolder } from '../support/cli.js';

describe('errors', () => {
  it(
    proves('an error is one line with its code, one with a hint, and nothing else', 'CM-02'),
    async () => {
      const result = await ailsd(['config', 'get', 'url']);
      expect(result).toEqual({
        code: 3,
        signal: null,
        stdout: '',
        stderr:
          'ailsd: NOT_FOUND: url is not set\n  hint: set it with `ailsd config set url VALUE`\n',
      });
    },
  );

  it(
    proves('with --json an error is the envelope with exit code and hint, on stderr', 'CM-02'),
    async () => {
      const { code, stdout, stderr } = await ailsd(['--json', 'config', 'get', 'url']);
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(JSON.parse(stderr)).toEqual({
        error: {
          code: 'NOT_FOUND',
          message: 'url is not set',
          retryable: false,
          exit_code: 3,
          hint: 'set it with `ailsd config set url VALUE`',
        },
      });
    },
  );

  it('an error of the command line itself is JSON too when JSON was asked for, wherever it was asked', async () => {
    const asked: [string[], Record<string, string>][] = [
      [['config', 'list', '--json', '--nonsense'], {}],
      [['-o', 'json', 'nonsense'], {}],
      [['--output=jsonl', 'nonsense'], {}],
      [['nonsense'], { AILSD_OUTPUT: 'json' }],
      [['nonsense'], { AILSD_JSON: '1' }],
      [['-qojson', 'nonsense'], {}],
      [['-qo', 'json', 'nonsense'], {}],
      [['--json', '--debug', 'nonsense'], {}],
    ];
    for (const [args, env] of asked) {
      const { code, stdout, stderr } = await ailsd(args, { env });
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
      expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'USAGE', exit_code: 2 } });
    }
  });

  it(proves('--debug adds the cause; without it there is never a stack', 'CM-02'), async () => {
    using folder = temporaryFolder();
    const env = { AILSD_CONFIG_DIR: `${folder.path}/file/below` };
    await import('node:fs/promises').then(({ writeFile }) => writeFile(`${folder.path}/file`, ''));
    const plain = await ailsd(['config', 'set', 'thread', 'thr_1'], { env });
    expect(plain.code).toBe(2);
    expect(plain.stderr).not.toMatch(/\n\s+at /);
    const debug = await ailsd(['config', 'set', 'thread', 'thr_1', '--debug'], { env });
    expect(debug.stderr).toMatch(/caused by Error: ENOTDIR[\s\S]*\n\s+at /);
  });

  it(
    proves('unknown commands, options, settings, topics and profiles suggest the nearest', 'CM-04'),
    async () => {
      const typos: [string[], string, string][] = [
        [['verison'], "unknown command 'verison'", 'did you mean version?'],
        [['config', 'lst'], "unknown command 'lst'", 'did you mean list?'],
        [['version', '--jsno'], "unknown option '--jsno'", 'did you mean --json?'],
        [['config', 'get', 'thraed'], "there is no setting 'thraed'", 'did you mean thread?'],
        [['help', 'exit-code'], "there is no help on 'exit-code'", 'did you mean exit-codes?'],
      ];
      for (const [args, message, hint] of typos) {
        const { code, stderr } = await ailsd(args);
        expect({ code, stderr }).toEqual({
          code: 2,
          stderr: `ailsd: USAGE: ${message}\n  hint: ${hint}\n`,
        });
      }
    },
  );

  it('the value of an option that nobody knows is not repeated', async () => {
    for (const [option, shown] of [
      ["--token=SEC'RET", '--token'],
      ['--scop=SECRET', '--scop'],
      ['--tok=a\nSECRET', '--tok'],
    ] as const) {
      for (const form of [[], ['--json']]) {
        const { code, stdout, stderr } = await ailsd(['login', option, ...form]);
        expect(code).toBe(2);
        expect(stderr).toContain(`unknown option '${shown}'`);
        expect(stdout + stderr).not.toMatch(/SEC|RET/);
      }
    }
  });

  it('one form for results and errors: -o wins over --json, and words after -- are words', async () => {
    const text = await ailsd(['--json', '-o', 'text', 'config', 'get', 'url']);
    expect(text.stderr).toMatch(/^ailsd: NOT_FOUND/);
    expect((await ailsd(['-qo', 'json', 'config', 'get', 'output'])).stdout).toContain('"json"');
    expect((await ailsd(['--', 'version'])).stdout).toMatch(/^ailsd /);
  });

  it('a wrong choice suggests the nearest, and a value with a dash says how to give it', async () => {
    expect((await ailsd(['completion', 'bsh'])).stderr).toBe(
      "ailsd: USAGE: 'bsh' is not one of bash, zsh, fish\n  hint: did you mean bash?\n",
    );
    const { stderr } = await ailsd(['config', 'set', 'thread', '-rf']);
    expect(stderr).toContain('put -- before a value that begins with a dash');
  });

  it('--debug tells what happens, also from its variable and also when all goes well', async () => {
    for (const options of [{ args: ['--debug'] }, { args: [], env: { AILSD_DEBUG: '1' } }]) {
      const { code, stderr } = await ailsd(['config', 'get', 'output', ...options.args], {
        env: options.env ?? {},
      });
      expect(code).toBe(0);
      expect(stderr).toMatch(/^ailsd: debug: ailsd config get of .*\n/);
      expect(stderr).toContain('output is from default');
    }
    expect((await ailsd(['nonsense'], { env: { AILSD_DEBUG: '1' } })).stderr).toMatch(/\n\s+at /);
  });

  it('a word that resembles nothing gets the way to the list instead of a guess', async () => {
    const { code, stderr } = await ailsd(['xyzzy']);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: "ailsd: USAGE: unknown command 'xyzzy'\n  hint: run it with --help\n",
    });
  });

  it('too few, too many and impossible values are usage errors', async () => {
    for (const args of [
      ['config', 'set', 'url'],
      ['config', 'path', 'extra'],
      ['completion', 'tcsh'],
      ['version', '-o', 'xml'],
      ['--profile'],
      ['config', 'list', '--profile', '../etc'],
    ]) {
      const { code, stdout, stderr } = await ailsd(args);
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
      expect(stderr).toMatch(/^ailsd: (USAGE|CONFIG_INVALID): .+\n {2}hint: .+\n$/);
    }
  });

  it(
    proves(
      'help exit-codes prints the table, and every error of ours ends with one of them',
      'CM-03',
    ),
    async () => {
      const { stdout } = await ailsd(['help', 'exit-codes', '--json']);
      const { items } = JSON.parse(stdout);
      const printed = new Map(
        items.map((item: { name: string; code: number }) => [item.name, item.code]),
      );
      expect(Object.fromEntries(printed)).toEqual(EXIT);
      expect(items.map((item: { meaning: string }) => item.meaning)).toEqual(
        Object.values(EXIT_MEANINGS),
      );
      const codes = new Set<number>(Object.values(EXIT));
      for (const [code, row] of Object.entries(ERRORS)) expect(codes, code).toContain(row.exit);
    },
  );
});
