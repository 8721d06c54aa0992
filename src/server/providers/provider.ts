/** What the broker knows of whatever makes sandboxes: seven verbs, some flags, and labels by which a sandbox is found again. */
import type { SandboxId, SnapshotId } from '../../protocol/ids.js';
import type { SandboxAccessFile, SandboxSpec } from '../../protocol/shapes/sandboxd.js';

export interface Provider extends AsyncDisposable {
  readonly name: string;
  /** What it can enforce here and now; asked once at start-up, and refused on (fail closed) where a policy needs more. */
  readonly flags: ProviderFlags;
  /** Makes it and starts it. The same id again is the same sandbox: a create that was cut short is simply repeated. */
  create(spec: SandboxSpec, access: SandboxAccessFile, signal: AbortSignal): Promise<void>;
  /** Starts a stopped one: its files are as they were. */
  start(id: SandboxId, signal: AbortSignal): Promise<void>;
  /** Ends its processes and keeps its files. */
  stop(id: SandboxId, signal: AbortSignal): Promise<void>;
  /** Removes all of it. One that is not there counts as removed. */
  destroy(id: SandboxId, signal: AbortSignal): Promise<void>;
  /** `undefined`: there is no such sandbox. */
  inspect(id: SandboxId, signal: AbortSignal): Promise<ProviderView | undefined>;
  /** Everything this provider holds for this server, whoever made it. */
  list(signal: AbortSignal): Promise<readonly ProviderView[]>;
  /** Where the dataplane of a running sandbox is reached. */
  endpoints(id: SandboxId, signal: AbortSignal): Promise<Endpoints>;
  /** Replaces whose tokens count. When it returns, the sandbox goes by it. */
  deliver(id: SandboxId, access: SandboxAccessFile, signal: AbortSignal): Promise<void>;
  /** Only where `flags.snapshots`. */
  readonly snapshots?: ProviderSnapshots | undefined;
}

export interface ProviderSnapshots {
  take(id: SandboxId, snapshot: SnapshotId, signal: AbortSignal): Promise<{ sizeBytes: number }>;
  restore(id: SandboxId, snapshot: SnapshotId, signal: AbortSignal): Promise<void>;
  remove(snapshot: SnapshotId, signal: AbortSignal): Promise<void>;
}

export interface ProviderFlags {
  readonly isolation: 'none' | 'namespaces' | 'container';
  /** Can keep a sandbox off every network (`internal-only`). */
  readonly egressControl: boolean;
  readonly memoryLimit: boolean;
  readonly snapshots: boolean;
  /** False: clients reach its sandboxes through the relay alone. */
  readonly validatesTokens: boolean;
}

export interface Endpoints {
  readonly httpUrl: string;
  readonly wsUrl: string;
}

export interface ProviderView {
  readonly id: SandboxId;
  readonly state: 'running' | 'stopped';
  readonly labels: Readonly<Record<string, string>>;
  /** Absent where the provider can't tell: then heartbeats alone keep it alive. */
  readonly activity?: Activity | undefined;
}

export interface Activity {
  readonly openShells: number;
  readonly attachedViewers: number;
  readonly runningCommands: number;
  readonly lastActiveAtMs: number;
}
