import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/command-table.js';
import { proves } from '../requirements.js';
import { ailsd, type CliOptions } from '../support/cli.js';
import { startFakeBroker } from '../support/fake-broker.js';
import { startFakeIssuer } from '../support/fake-issuer.js';
import { loggedIn } from '../support/stored-login.js';

/** The parts of Node that cost more than a millisecond to load. */
const HEAVY = [
  'child_process',
  'crypto',
  'http',
  'https',
  'net',
  'stream',
  'tls',
  'tty',
  'worker_threads',
];

let folder = '';
let hook = '';
let modules: Record<string, string[]> = {};

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ailsd-loads-'));
  hook = join(folder, 'hook.cjs');
  writeFileSync(
    hook,
    `process.on('exit', () => {
      const files = Object.keys(require.cache).filter((file) => file !== __filename);
      const builtins = process.moduleLoadList.map((line) => line.replace('NativeModule ', ''));
      require('node:fs').writeSync(2, '\\nLOADED ' + JSON.stringify({ files, builtins }));
    });`,
  );
  const list = join(import.meta.dirname, '..', '..', 'dist', 'modules.json');
  modules = JSON.parse(readFileSync(list, 'utf8'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Loaded {
  /** Files of src/cli/commands. */
  readonly commands: string[];
  /** Rooms beside cli, base and protocol, which every command has something of. */
  readonly rooms: string[];
  readonly packages: string[];
  readonly heavy: string[];
}

async function loadedBy(args: readonly string[], env: CliOptions['env'] = {}): Promise<Loaded> {
  const { stderr } = await ailsd(args, { node: ['--require', hook], env });
  const { files, builtins } = JSON.parse(stderr.split('\nLOADED ')[1] ?? '{}');
  const sources: string[] = files.flatMap((file: string) => modules[basename(file)] ?? [file]);
  return {
    commands: named(sources, /^src\/cli\/commands\/(.+)\.ts$/),
    rooms: named(sources, /^src\/((?!(?:cli|base|protocol)\/)[^/]+(?:\/[^/]+(?=\/))?)/),
    packages: named(sources, /node_modules\/((?:@[^/]+\/)?[^/]+)/),
    heavy: HEAVY.filter((name) => builtins.includes(name)),
  };
}

function named(sources: readonly string[], pattern: RegExp): string[] {
  const names = sources.flatMap((source) => pattern.exec(source)?.[1] ?? []);
  return [...new Set(names)].sort();
}

describe('a command loads only what it uses', () => {
  const frame: Loaded = { commands: [], rooms: [], packages: ['commander'], heavy: [] };
  const SESSION_ROOMS = ['client/auth', 'client/credentials', 'client/sessions', 'stream'];
  const cases: [string[], Partial<Loaded>][] = [
    [['--help'], {}],
    [['nonsense'], {}],
    [['version'], { commands: ['version'] }],
    [['config', 'get', 'output'], { commands: ['config'] }],
    [['help', 'exit-codes'], { commands: ['help'] }],
    [['help', 'version'], { commands: ['help', 'version'] }],
    [['doctor'], { commands: ['doctor'], heavy: ['child_process', 'net', 'stream'] }],
    [['completion', '--help'], { commands: ['completion'] }],
    [['token'], { commands: ['token'], rooms: ['client/auth', 'client/credentials'] }],
    [['whoami'], { commands: ['whoami'], rooms: ['client/auth', 'client/credentials'] }],
    [['logout'], { commands: ['logout'], rooms: ['client/auth', 'client/credentials'] }],
    [
      ['login'],
      {
        commands: ['login'],
        rooms: ['client/auth', 'client/credentials', 'client/http'],
        packages: ['commander', 'oauth4webapi', 'openid-client', 'zod'],
        heavy: ['http', 'net', 'stream'],
      },
    ],
    [['server'], { commands: ['server'] }],
    [['session'], { commands: ['session'], rooms: SESSION_ROOMS }],
    [['session', 'get', 'thr_demo'], { commands: ['session'], rooms: SESSION_ROOMS }],
    [['sandbox'], { commands: ['sandbox'] }],
    [['share'], { commands: ['share'] }],
    [['attach', '--help'], { commands: ['attach'] }],
    [['exec', '--help'], { commands: ['exec'] }],
    [['run', '--help'], { commands: ['run'] }],
    [['job'], { commands: ['job'] }],
    [['dev', '--help'], { commands: ['dev'] }],
    [['code', '--help'], { commands: ['code'] }],
    [['cp', '--help'], { commands: ['cp'] }],
    [['files', '--help'], { commands: ['files'] }],
    [['shell'], { commands: ['shell'] }],
    [['admin'], { commands: ['admin'], rooms: SESSION_ROOMS }],
    [['api', '--help'], { commands: ['api'] }],
  ];

  it.each(cases)(proves('%j', 'CM-10'), async (args, extra) => {
    expect(await loadedBy(args)).toEqual({ ...frame, ...extra });
  });

  it(proves('whoami of somebody: one request, no schema, no log, no TLS', 'CM-10'), async () => {
    await using issuer = await startFakeIssuer();
    using home = await loggedIn(issuer);
    const loaded = await loadedBy(['whoami', '--json'], home.env);
    expect(loaded).toEqual({
      commands: ['whoami'],
      rooms: ['client/auth', 'client/credentials', 'client/http'],
      packages: ['commander'],
      heavy: ['http', 'net', 'stream'],
    });
  });

  it(
    proves('session get of somebody: one request, no schema, no log, no TLS', 'CM-10'),
    async () => {
      await using broker = await startFakeBroker();
      const env = { ...broker.env, AILSD_CACHE_DIR: join(folder, 'cache') };
      await ailsd(['session', 'ensure', 'thr_demo'], { env });
      const loaded = await loadedBy(['session', 'get', 'thr_demo', '--json'], env);
      expect(loaded).toEqual({
        commands: ['session'],
        rooms: [...SESSION_ROOMS, 'client/http'].sort(),
        packages: ['commander'],
        heavy: ['http', 'net', 'stream'],
      });
      expect(broker.requests).toHaveLength(2);
    },
  );

  it('every command is listed', () => {
    const listed = new Set(cases.map(([args]) => args[0]));
    expect(COMMANDS.map(({ name }) => name).filter((name) => !listed.has(name))).toEqual([]);
  });

  it(proves('--version loads no program at all', 'CM-10'), async () => {
    const { packages, heavy, commands } = await loadedBy(['--version']);
    expect({ packages, heavy, commands }).toEqual({ packages: [], heavy: [], commands: [] });
  });
});
