/** Keychains that are of no use, each made for real: no bus, a silent one, no service, a locked or frozen one. */
import { once } from 'node:events';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './cli.js';
import { eventually } from './eventually.js';
import { startSession } from './keyring.js';

/** What a program needs to find the keychain. */
export type Variables = Readonly<Record<string, string>>;

/** The ways a keychain can be of no use, each made for real. */
export const USELESS_KEYCHAINS: Record<
  string,
  { readonly real: boolean; readonly make: () => Promise<Variables> }
> = {
  'no D-Bus': { real: false, make: async () => ({}) },
  'a D-Bus that nobody serves': {
    real: false,
    make: async () => ({ DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent/bus' }),
  },
  'a D-Bus that would have to be started': {
    real: false,
    make: async () => ({ DBUS_SESSION_BUS_ADDRESS: 'autolaunch:' }),
  },
  'a D-Bus that accepts and never answers': { real: false, make: () => startBus([]) },
  'a D-Bus that greets and then says nothing': {
    real: false,
    make: () => startBus(['OK 1234deadbeef\r\n']),
  },
  'a D-Bus that lets nobody in': { real: false, make: () => startBus(['REJECTED EXTERNAL\r\n']) },
  'a D-Bus without a secret service': { real: true, make: () => keyringSession() },
  'a locked collection and no prompter': {
    real: true,
    make: () =>
      keyringSession(async (session) => {
        const first = await session.startKeyring('unlocked');
        await eventually(() => readdirSync(first.folder).includes('login.keyring'));
        await first.end();
        await session.startKeyring('locked');
      }),
  },
  'a secret service that never answers': {
    real: true,
    make: () =>
      keyringSession(async (session) => (await session.startKeyring('unlocked')).freeze()),
  },
  'a secret service that fails only on write': {
    real: true,
    make: () =>
      keyringSession(async (session) => {
        const keyring = await session.startKeyring('unlocked');
        // Its collections are in memory by now; a file where their folder was lets nothing be written.
        await eventually(() => readdirSync(keyring.folder).includes('login.keyring'));
        rmSync(keyring.folder, { recursive: true });
        writeFileSync(keyring.folder, '');
      }),
  },
};

/** A session of the test's own, until the test is over. */
export async function keyringSession(
  prepare?: (session: Awaited<ReturnType<typeof startSession>>) => Promise<void>,
): Promise<Variables> {
  const session = await startSession();
  onTestFinished(() => session[Symbol.asyncDispose]());
  await prepare?.(session);
  return session.variables;
}

/** Says these things in turn to whatever it is told, and nothing after them. */
export async function startBus(
  says: readonly string[],
  silent = (): void => undefined,
): Promise<Variables> {
  const folder = temporaryFolder();
  const path = join(folder.path, 'bus');
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const left = [...says];
    socket.on('error', () => undefined);
    socket.on('data', () => {
      const next = left.shift();
      if (next !== undefined) socket.write(next);
      else silent();
    });
  });
  server.listen(path);
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
    folder[Symbol.dispose]();
  });
  return { PATH: '/usr/bin:/bin', DBUS_SESSION_BUS_ADDRESS: `unix:path=${path},guid=1234` };
}
