/** What a sandbox serves, under the broker's own address: for sandboxes that cannot be reached, or cannot check tokens. */
import { DATAPLANE_ROUTES } from './dataplane.js';
import type { Route } from './route.js';

const { listSandboxCommands, getSandboxCommand, getSandboxCommandLogs, endSandboxCommand } =
  DATAPLANE_ROUTES;
const { exec, uploadFile, downloadFile, readFile, statFile, writeFile, deleteFile } =
  DATAPLANE_ROUTES;
const { listShells, endShell, readShellLog } = DATAPLANE_ROUTES;
const { shellSocket, shellSocketByThread, execSocket, syncSocket, tunnelSocket } = DATAPLANE_ROUTES;

const COMMAND = '/relay/{sandbox_id}/v1/commands/{command_id}';
const SHELL = '/relay/{sandbox_id}/v1/shells/{shell_id}';
const FILE = '/relay/{sandbox_id}/files/{path}';
const family = 'relay';

/** The base URL of a sandbox that is reached this way. */
export function relayPath(sandboxId: string): string {
  return `/relay/${sandboxId}`;
}

/** Each is the dataplane's route of the same name without `relayed`: same token, same capability, same answers. */
export const RELAY_ROUTES = {
  relayedExec: { ...exec, path: '/relay/{sandbox_id}/v1/exec', family },
  relayedListSandboxCommands: {
    ...listSandboxCommands,
    path: '/relay/{sandbox_id}/v1/commands',
    family,
  },
  relayedGetSandboxCommand: { ...getSandboxCommand, path: COMMAND, family },
  relayedGetSandboxCommandLogs: { ...getSandboxCommandLogs, path: `${COMMAND}/logs`, family },
  relayedEndSandboxCommand: { ...endSandboxCommand, path: COMMAND, family },
  relayedUploadFile: { ...uploadFile, path: '/relay/{sandbox_id}/v1/files/upload', family },
  relayedDownloadFile: { ...downloadFile, path: '/relay/{sandbox_id}/v1/files/download', family },
  relayedReadFile: { ...readFile, path: FILE, family },
  relayedStatFile: { ...statFile, path: FILE, family },
  relayedWriteFile: { ...writeFile, path: FILE, family },
  relayedDeleteFile: { ...deleteFile, path: FILE, family },
  relayedListShells: { ...listShells, path: '/relay/{sandbox_id}/v1/shells', family },
  relayedEndShell: { ...endShell, path: SHELL, family },
  relayedReadShellLog: { ...readShellLog, path: `${SHELL}/log`, family },
  relayedShellSocket: { ...shellSocket, path: '/relay/{sandbox_id}/v1/shell/ws', family },
  relayedShellSocketByThread: { ...shellSocketByThread, path: '/relay/{sandbox_id}/ws', family },
  relayedExecSocket: { ...execSocket, path: '/relay/{sandbox_id}/v1/exec/ws', family },
  relayedSyncSocket: { ...syncSocket, path: '/relay/{sandbox_id}/v1/sync/ws', family },
  relayedTunnelSocket: { ...tunnelSocket, path: '/relay/{sandbox_id}/v1/tunnel/ws', family },
} as const satisfies Record<string, Route>;
