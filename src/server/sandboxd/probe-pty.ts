/** A program of its own: opens a PTY, runs something in it, says on stdout whether its output came through. */
import { spawn } from '@lydell/node-pty';

const WORD = 'ailsd-pty-works';

const [file, args]: [string, string[]] =
  process.platform === 'win32'
    ? ['cmd.exe', ['/c', 'echo', WORD]]
    : ['/bin/sh', ['-c', `echo ${WORD}; read -r _`]];
const pty = spawn(file, args, { cols: 80, rows: 24 });
let seen = '';
pty.onData((data) => {
  seen += data;
  if (seen.includes(WORD)) pty.write('\r');
});
pty.onExit(() => {
  process.stdout.write(JSON.stringify({ works: seen.includes(WORD) }));
});
