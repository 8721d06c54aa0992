/** Writes every file that the source decides: OpenAPI, completions, pages of help, tables in the docs. --check only compares. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { completionScript, SCRIPT_FILES, SHELLS } from '../cli/completion/scripts.js';
import { processEnvironment } from '../cli/config.js';
import { Context } from '../cli/context.js';
import { fullName } from '../cli/describe.js';
import { processIo } from '../cli/io.js';
import { createProgram } from '../cli/program.js';
import { buildOpenApi } from '../protocol/openapi.js';
import { docsTables } from './docs-tables.js';

const HELP_FOLDER = 'test/cli/goldens/help';

async function generatedFiles(): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const program = await createProgram(new Context(processIo(), processEnvironment()), 'all');
  for (const shell of SHELLS) {
    files.set(`completions/${SCRIPT_FILES[shell]}`, completionScript(shell, program));
  }
  for (const command of allCommands(program)) {
    const name = fullName(command).replaceAll(' ', '.');
    files.set(`${HELP_FOLDER}/${name}.txt`, command.helpInformation());
  }
  files.set('docs/openapi.json', `${JSON.stringify(buildOpenApi(), null, 2)}\n`);
  files.set('docs/protocol.md', withTables(readFileSync('docs/protocol.md', 'utf8'), docsTables()));
  return files;
}

function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

/** Fills what stands between `<!-- table: NAME -->` and `<!-- end -->`. */
function withTables(page: string, tables: ReadonlyMap<string, string>): string {
  return page.replace(/<!-- table: (\w+) -->\n[\s\S]*?<!-- end -->/g, (_, name: string) => {
    const table = tables.get(name);
    if (table === undefined) throw new Error(`docs/protocol.md asks for an unknown table: ${name}`);
    return `<!-- table: ${name} -->\n${table}\n<!-- end -->`;
  });
}

/** Pages of help whose command is gone. */
function leftovers(files: ReadonlyMap<string, string>): string[] {
  if (!existsSync(HELP_FOLDER)) return [];
  return readdirSync(HELP_FOLDER)
    .map((name) => `${HELP_FOLDER}/${name}`)
    .filter((path) => !files.has(path));
}

const files = await generatedFiles();
const changed = [...files].filter(
  ([path, text]) => !existsSync(path) || readFileSync(path, 'utf8') !== text,
);
const gone = leftovers(files);

if (process.argv.includes('--check')) {
  for (const path of [...changed.map(([one]) => one), ...gone]) {
    console.error(`${path} is not what the source makes: run \`npm run generate\``);
  }
  process.exitCode = changed.length + gone.length === 0 ? 0 : 1;
} else {
  for (const [path, text] of changed) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    console.log(`wrote ${path}`);
  }
  for (const path of gone) rmSync(path);
}
