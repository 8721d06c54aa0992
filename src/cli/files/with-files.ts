/** Opens the sandbox of a place, for as long as some work with its files takes. */
import { Files } from '../../client/files/files.js';
import { openSession } from '../../client/sessions/open-session.js';
import type { Context } from '../context.js';
import { createSessionWorld } from '../sessions/session-world.js';
import { threadIfNamed } from '../sessions/thread-argument.js';
import { whileStarting } from '../sessions/while-starting.js';
import type { RemotePlace } from './place.js';

export interface FileOptions {
  readonly sandbox?: string;
}

/** Writing makes the sandbox if there is none; reading and deleting do not. */
export async function withFiles<T>(
  context: Context,
  { thread }: RemotePlace,
  options: FileOptions,
  access: 'read' | 'change' | 'create',
  work: (files: Files) => Promise<T>,
): Promise<T> {
  using world = createSessionWorld(context, options);
  const { signal } = context;
  const opening = openSession(world, {
    thread: threadIfNamed(context, thread),
    mode: access === 'create' ? 'ensure' : 'attach_only',
    capabilities: [access === 'read' ? 'fs:ro' : 'fs:rw'],
    signal,
  });
  await using session = await whileStarting(context, 'waiting for the sandbox', () => opening);
  return await work(new Files(session, await world.http(), signal));
}
