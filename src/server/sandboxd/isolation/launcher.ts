/** How a process of one sandbox is started: what to execute on the host so that the wanted program runs inside. */
import type { SandboxId } from '../../../protocol/ids.js';
import type { IsolationReport, SandboxSpec } from '../../../protocol/shapes/sandboxd.js';

/** One way of keeping sandboxes apart, chosen once at the daemon's start. */
export interface Isolation {
  readonly report: IsolationReport;
  /** Makes the sandbox's folders where they are missing; starts nothing yet. */
  open(sandbox: SandboxPlace, signal: AbortSignal): Promise<Launcher>;
}

export interface SandboxPlace {
  readonly id: SandboxId;
  /** The host's folder of this sandbox; `workspace`, `home`, `tmp` and `etc` in it are the launcher's. */
  readonly folder: string;
  readonly environment: SandboxSpec['environment'];
  /** 0: no limit. */
  readonly memoryBytes: number;
  readonly pids: number;
}

export interface Launcher extends AsyncDisposable {
  readonly report: IsolationReport;
  /** The host's path of the sandbox's workspace; inside it may have another name. */
  readonly workspace: string;
  /** The workspace's path as the program inside sees it. */
  readonly workspaceInside: string;
  /** The account under which processes of the sandbox run and its files belong, where that differs from ours. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
  /** What to spawn. `cwd` is relative to the workspace or absolute inside. Rejects with NOT_FOUND for a folder that is not there. */
  launch(request: LaunchRequest): Promise<Launch>;
  /**
   * Sends a signal to what was launched, never to what stands between: with a terminal to the foreground group, else to the program's
   * group. `SIGKILL` ends a `command` with its whole tree. `pid`: of the spawned process, which leads a group of its own.
   * False: there is nothing left to send it to.
   */
  signal(pid: number, signal: NodeJS.Signals): Promise<boolean>;
  /** Ends every process of the sandbox, also those that left their session, and waits until they are gone. A later launch starts afresh. */
  killAll(signal: AbortSignal): Promise<void>;
  /** How often a process was ended for want of memory, so that a caller can tell before from after; undefined: can't be told. */
  outOfMemoryKills(): Promise<number | undefined>;
}

export interface LaunchRequest {
  readonly argv: readonly [string, ...string[]];
  readonly cwd?: string | undefined;
  /** The whole environment of the program, but for what the sandbox itself adds (HOME, PATH, USER). */
  readonly env: Readonly<Record<string, string>>;
  /**
   * A `shell` is spawned in a terminal of its own; what it leaves in the background lives on. Its end by signal n is exit status 128 + n.
   * A `command` is spawned with pipes as the leader of a group (`detached`), and is ended as a whole tree with its first process; its
   * end by a signal is the spawned process's end by that signal.
   */
  readonly kind: 'shell' | 'command';
}

export interface Launch {
  readonly file: string;
  readonly args: readonly string[];
  /** For the spawned process itself; the program's own is arranged inside. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}
