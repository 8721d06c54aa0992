// Packs the project as it would be published, looks at it as a stranger would, installs it globally and runs it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import packageJson from '../../package.json' with { type: 'json' };

const folder = mkdtempSync(join(tmpdir(), 'ailsd-package-'));
try {
  const { messages } = await publint({ strict: true });
  for (const message of messages) console.error(formatMessage(message, packageJson));
  if (messages.length > 0) throw new Error('publint has something to say');

  // What is packed was built by `npm ci`; `npm pack` would build it again.
  run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], process.cwd());
  const [tarball = ''] = readdirSync(folder);
  const prefix = join(folder, 'prefix');
  run(
    'npm',
    ['install', '--global', '--silent', '--prefix', prefix, join(folder, tarball)],
    folder,
  );
  const program =
    process.platform === 'win32' ? join(prefix, 'ailsd.cmd') : join(prefix, 'bin', 'ailsd');
  const version = run(program, ['--version'], folder).trim();
  if (version !== packageJson.version) throw new Error(`the installed program says ${version}`);
  run(program, ['completion', 'bash'], folder);
  run(program, ['doctor', '--json'], folder);
  const sdk = "import('ailsd').then(({ VERSION }) => console.log(VERSION))";
  const modules = join(prefix, process.platform === 'win32' ? '' : 'lib', 'node_modules');
  const imported = run(
    process.execPath,
    ['--input-type=module', '-e', sdk],
    join(modules, 'ailsd'),
  ).trim();
  if (imported !== packageJson.version) throw new Error(`the installed SDK says ${imported}`);
  console.log(`${tarball} installs globally and runs`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @type {(program: string, args: string[], cwd: string) => string} */
function run(program, args, cwd) {
  return execFileSync(program, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
