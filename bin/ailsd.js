#!/usr/bin/env node
// Starts the built program. CommonJS, and `--version` before anything else is loaded: this file is most of the start-up time.
const { existsSync, writeSync } = require('node:fs');
const program = `${__dirname}/../dist/cli/ailsd.cjs`;

if (saidVersion()) {
  // Nothing else to do.
} else if (existsSync(program)) {
  require(program);
} else {
  writeSync(2, 'ailsd: CONFIG_INVALID: this copy was not built; run `npm run build` in it\n');
  process.exitCode = 2;
}

function saidVersion() {
  if (process.argv.length !== 3 || !/^(--version|-V)$/.test(process.argv[2])) return false;
  try {
    writeSync(1, `${require('../package.json').version}\n`);
    return true;
  } catch {
    return false; // The program knows what to say of a stdout that can't be written.
  }
}
