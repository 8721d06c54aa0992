/** Shells over HTTP: the list, the end of one, and the recording of one. */
import { open, readFile } from 'node:fs/promises';
import { AilsdError } from '../../../protocol/errors.js';
import type { SandboxRoutes } from '../door/routes.js';
import type { Shell } from './shell.js';
import type { Shells } from './shells.js';

export function shellRoutes(shells: Shells): SandboxRoutes['http'] {
  return {
    listShells: () => ({ body: { items: shells.list().map(toView) } }),
    endShell: ({ parameters }) => {
      shells.get(parameters['shell_id'] ?? '').kill('ailsd');
      return { status: 204 };
    },
    readShellLog: async ({ parameters }) => {
      const id = parameters['shell_id'] ?? '';
      await shells
        .list()
        .find((shell) => shell.id === id)
        ?.recorded();
      return {
        headers: { 'Content-Type': 'application/x-asciicast' },
        stream: await recordingOf(shells.recordingPath(id)),
      };
    },
  };
}

function toView(shell: Shell) {
  const { id, title, startedAtMs, endedAtMs, size, offset, outcome } = shell;
  return {
    id,
    title,
    state: outcome === undefined ? 'running' : 'ended',
    started_at: new Date(startedAtMs).toISOString(),
    ...(endedAtMs === undefined ? {} : { ended_at: new Date(endedAtMs).toISOString() }),
    ...(outcome === undefined ? {} : { outcome }),
    ...size,
    output_bytes: offset,
    viewers: shell.presence().map(({ actor, name, isWriter }) => ({
      actor,
      subject: name,
      role: isWriter ? 'writer' : 'observer',
    })),
  };
}

/** The file before, if the recording has filled one, then the file; one header. */
async function recordingOf(path: string): Promise<AsyncIterable<Uint8Array | string>> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw new AilsdError('NOT_FOUND', 'there is no recording of such a shell', { cause });
  });
  const before = await readFile(`${path}.old`, 'utf8').catch(() => '');
  return (async function* () {
    try {
      const text = await file.readFile('utf8');
      yield before;
      yield before === '' ? text : text.slice(text.indexOf('\n') + 1);
    } finally {
      await file.close();
    }
  })();
}
