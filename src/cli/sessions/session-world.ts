/** What getting hold of a sandbox needs, made of this command's settings and surroundings. */
import type { GivenAccess, SessionWorld } from '../../client/sessions/world.js';
import type { Context } from '../context.js';
import { createAuthWorld } from '../login/auth-world.js';
import { givenAccess } from './given-access.js';

/** Of a command that takes access from elsewhere: see `sandboxOption`. */
export interface SandboxOptions {
  readonly sandbox?: string | undefined;
}

export function createSessionWorld(
  context: Context,
  { sandbox }: SandboxOptions = {},
): SessionWorld & Disposable {
  let given: { readonly access: GivenAccess | undefined } | undefined;
  return {
    ...createAuthWorld(context),
    cacheFolder: context.environment.cacheFolder,
    givenAccess: () => {
      // Once: standard input can't be read again.
      given ??= { access: sandbox === undefined ? undefined : givenAccess(context, sandbox) };
      return given.access;
    },
    random: Math.random,
    trace: (text) => context.trace(text),
  };
}
