/**
 * The native half of the PTY package, without its JavaScript half: that one reports an exit 200 ms late, writes in a way that can block
 * the whole process, and loses what a fast program printed last.
 */
import { createRequire } from 'node:module';

export interface NativePty {
  /** Of the master's end; it blocks nobody. */
  readonly fd: number;
  readonly pid: number;
  /** The slave's path. */
  readonly path: string;
}

export interface ForkRequest {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly cols: number;
  readonly rows: number;
}

export type OnExit = (exitCode: number, signal: number) => void;

/** The child is the leader of a session of its own, whose terminal this is. Synchronous: some milliseconds. */
export function forkPty(request: ForkRequest, onExit: OnExit): NativePty {
  const { file, args, env, cwd, cols, rows } = request;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const made: unknown = call(
    'fork',
    file,
    [...args],
    variables,
    cwd,
    cols,
    rows,
    NO_CHANGE,
    NO_CHANGE,
    IS_UTF8,
    '',
    onExit,
  );
  if (
    typeof made !== 'object' ||
    made === null ||
    !('fd' in made && 'pid' in made && 'pty' in made) ||
    typeof made.fd !== 'number' ||
    typeof made.pid !== 'number' ||
    typeof made.pty !== 'string'
  )
    throw new Error('the PTY package made something else');
  return { fd: made.fd, pid: made.pid, path: made.pty };
}

export function resizePty(fd: number, cols: number, rows: number): void {
  call('resize', fd, cols, rows);
}

/** Of user and group. */
const NO_CHANGE = -1;
/** So that erasing in the kernel's own line editing erases characters, not bytes. */
const IS_UTF8 = true;

function call(name: string, ...parameters: readonly unknown[]): unknown {
  binding ??= loadBinding();
  const method: unknown = Reflect.get(binding, name);
  if (typeof method !== 'function') throw new Error(`the PTY package has no ${name}`);
  return Reflect.apply(method, binding, parameters);
}

let binding: object | undefined;

function loadBinding(): object {
  const loader: unknown = createRequire(import.meta.url)('@lydell/node-pty/requireBinary.js');
  if (typeof loader === 'object' && loader !== null && 'requireBinary' in loader) {
    const { requireBinary } = loader;
    const loaded: unknown = typeof requireBinary === 'function' ? requireBinary('pty.node') : null;
    if (typeof loaded === 'object' && loaded !== null) return loaded;
  }
  throw new Error('the PTY package has no native part here');
}
