#!/usr/bin/env node
// Starts the built program. CommonJS, and `--version` before anything else is loaded: this file is most of the start-up time.
const { existsSync, writeSync } = require('node:fs');
const program = `${__dirname}/../dist/cli/ailsd.cjs`;
if (process.argv.length === 3 && /^(--version|-V)$/.test(process.argv[2])) {
  try {
    writeSync(1, `${require('../package.json').version}\n`);
  } catch (error) {
    if (error.code !== 'EPIPE') throw error;
  }
} else if (existsSync(program)) {
  require(program);
} else {
  writeSync(2, 'ailsd: CONFIG_INVALID: this copy was not built; run `npm run build` in it\n');
  process.exitCode = 2;
}
