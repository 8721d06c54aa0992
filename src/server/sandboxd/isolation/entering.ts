/**
 * How a program gets into a sandbox that a holder keeps open: the line of small programs that join its limits, enter its namespaces, give
 * up every privilege, and become the program. What the user chose (environment, folder) is carried as data and used by the last of them
 * only, so that none of the others runs under a LD_PRELOAD of the user's.
 */
import { type Account, HOLDER_USER_NAMESPACE } from './account.js';
import { ownAccountPrefix } from './bubblewrap-arguments.js';
import type { Launch, LaunchRequest } from './launcher.js';
import type { Programs } from './programs.js';

export interface Entrance {
  readonly programs: Programs;
  readonly account: Account;
  /** The host's pid of the sandbox's first process. */
  readonly firstPid: number;
  readonly hasOwnNetwork: boolean;
  /** Files into which a process writes 0 to be counted against the sandbox's limits. */
  readonly limitFiles: readonly string[];
  /** Of prlimit, where no control group does it. */
  readonly resourceLimits: readonly string[];
}

/** Of standard error: what a program is given beyond it is not meant for it. */
const LAST_STANDARD = 2;

/** Never read by the small programs, whose every variable is here. */
const OWN_ENV = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C' } as const;

export function enter(
  entrance: Entrance,
  request: LaunchRequest,
  env: Readonly<Record<string, string>>,
  cwd: string,
): Launch {
  const chain = request.kind === 'shell' ? shellChain : commandChain;
  return {
    ...join(entrance, LAST_STANDARD, chain(entrance, request.argv)),
    env: { ...OWN_ENV, ...carry(env), [CWD]: cwd },
    cwd: '/',
  };
}

/** The same for the holder itself, which is of the sandbox too; `keep`: the last descriptor that is meant for it. */
export function join(
  { programs, limitFiles }: Pick<Entrance, 'programs' | 'limitFiles'>,
  keep: number,
  argv: readonly string[],
): { readonly file: string; readonly args: readonly string[] } {
  const [file, ...options] = programs.closer;
  const limits = [`${limitFiles.length}`, ...limitFiles];
  return { file, args: [...options, '-c', JOIN, 'ailsd', `${keep}`, ...limits, ...argv] };
}

/**
 * Closes what the daemon holds and Node lets through, terminals of other sandboxes among it, and joins the limits. No core of what
 * follows, wherever the host keeps cores: some of it dies of the program's signal.
 */
const JOIN = `
for fd in /proc/self/fd/*; do
  fd=\${fd##*/}
  if [ "$fd" -gt "$1" ]; then eval "exec $fd>&-"; fi
done
ulimit -c 0
n=$2; shift 2
while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 125; shift; n=$((n - 1)); done
exec "$@"`;

/**
 * In a terminal the program shares its foreground group with whoever waits for it: that one must not die of the user's Ctrl-C. It is a
 * shell that ignores every signal, outside the sandbox's process namespace; its child is inside, with all signals as usual.
 */
function shellChain(entrance: Entrance, argv: readonly string[]): readonly string[] {
  const { programs } = entrance;
  return [
    ...enterNamespaces(entrance, ['--no-fork']),
    ...giveUp(entrance, HOLDER_USER_NAMESPACE),
    ...[programs.sh, '-c', `${IGNORE}\n${TO_PROGRAM}\n${WAIT}`, 'ailsd', programs.env],
    ...[programs.sh, ...argv],
  ];
}

/**
 * A command has a process namespace of its own: when the one that waits for it ends, so does its first process, and with that everything
 * in it. The program is not that first process, because the first process of a namespace is deaf to most signals and inherits orphans.
 * Those that wait are nsenters, which end as their child ended; signals are for the program's session alone, so none reaches them.
 */
function commandChain(entrance: Entrance, argv: readonly string[]): readonly string[] {
  const { programs } = entrance;
  const drop = giveUp(entrance, '/proc/self/fd/9');
  const begin = [programs.sh, '-c', `${TO_PROGRAM}\nexec ${programs.setsid} "$@"`, 'ailsd'];
  return [
    ...enterNamespaces(entrance, []),
    ...[programs.unshare, '--pid', '--mount', '--'],
    ...[programs.sh, '-c', nest(programs, drop), 'ailsd'],
    ...[...drop, ...begin, programs.env, programs.sh, ...argv],
  ];
}

/** Descriptor 9: the inner user namespace, if there is one. 8: the new process namespace, whose /proc its first visitor mounts. */
function nest(programs: Programs, drop: readonly string[]): string {
  const idle = [programs.sh, '-c', 'exec 9<&-; "$0" infinity; :', programs.sleep];
  const alone = [programs.env, '-i', programs.setpriv, '--pdeathsig', 'KILL', '--', ...idle];
  const first = [...drop, ...alone];
  const mount = `"$0" -t proc proc /proc || exit 125; exec "$@"`;
  const visit = [programs.nsenter, '--pid=/proc/self/fd/8', '--', programs.sh, '-c', mount];
  return `
exec 9</proc/2/ns/user
${quote(first)} </dev/null >/dev/null 2>&1 &
exec 8</proc/self/ns/pid_for_children
exec ${quote([...visit, programs.mount])} "$@"`;
}

/** Words of ours for a script of ours. */
function quote(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
}

function enterNamespaces(
  { programs, account, firstPid, hasOwnNetwork }: Entrance,
  options: readonly string[],
): readonly string[] {
  const user = account.kind === 'mapped' ? ['--user', '--preserve-credentials'] : [];
  const net = hasOwnNetwork ? ['--net'] : [];
  const others = ['--mount', '--pid', '--ipc', '--uts', '--cgroup'];
  const target = ['--target', `${firstPid}`];
  return [programs.nsenter, ...target, ...options, ...user, ...others, ...net, '--'];
}

/** After this a process is what any process of the sandbox is. */
function giveUp(entrance: Entrance, userNamespace: string): readonly string[] {
  const { programs, account, resourceLimits } = entrance;
  const limits = resourceLimits.length > 0 ? [programs.prlimit, ...resourceLimits, '--'] : [];
  switch (account.kind) {
    case 'own':
      return [...ownAccountPrefix(programs, account), ...limits];
    case 'mapped':
      return [
        ...[programs.nsenter, `--user=${userNamespace}`, '--preserve-credentials', '--'],
        ...[programs.setpriv, '--no-new-privs', '--inh-caps=-all', '--', ...limits],
      ];
  }
}

const CWD = 'AILSD_CWD';
const COUNT = 'AILSD_COUNT';
const ENTRY = 'AILSD_ENTRY_';

function carry(env: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const carried = entries.map((entry, at) => [`${ENTRY}${at}`, entry]);
  return { ...Object.fromEntries(carried), [COUNT]: `${entries.length}` };
}

/** All but SIGKILL, SIGSTOP, SIGCONT and SIGCHLD; 32 and up are not sent by terminals. */
const IGNORE = "trap '' 1 2 3 4 5 6 7 8 10 11 12 13 14 15 16 20 21 22 23 24 25 26 27 28 29 30 31";

/** Leaves in "$@" what becomes the program, with the environment it was to have. A name with `=` would be taken for a variable by env. */
const TO_PROGRAM = `
exec 8<&- 9<&-
env=$1 sh=$2; shift 2
cd -- "$${CWD}" || exit 125
case $1 in *=*) set -- "$sh" -c 'exec "$0" "$@"' "$@" ;; esac
i=$${COUNT}
while [ "$i" -gt 0 ]; do i=$((i - 1)); eval "set -- \\"\\$${ENTRY}$i\\" \\"\\$@\\""; done
set -- "$env" -i --default-signal -- "$@"`;

/** The shell's own remarks on how its child ended are for nobody. */
const WAIT = `
exec 8>&2 2>/dev/null
(exec "$@" 2>&8 8>&-)
exit $?`;
