/** A daemon of a kind: has programs at work in a sandbox, says so, and waits to be killed. */
import { openSandboxes, start } from './sandboxes.js';

const mark = process.argv[2] ?? '';
const sandboxes = await openSandboxes();
const launcher = await sandboxes.open();
const script = `setsid nohup sleep ${mark} >/dev/null 2>&1 & echo on; exec sleep ${mark}`;
for (const kind of ['shell', 'command'] as const) {
  await (await start(launcher, ['sh', '-c', script], { kind })).says('on');
}
process.stdout.write(`${sandboxes.dir}\n`);
setInterval(() => undefined, 60_000);
