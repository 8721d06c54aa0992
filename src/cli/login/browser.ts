/** Whether a browser can be opened from here, and opening it: never through a shell, never where nobody would see it. */
import type { Context } from '../context.js';

/** Why not, in words; `undefined` where it can. */
export function whyNoBrowser(context: Context, wanted: boolean): string | undefined {
  const { environment, mayAsk } = context;
  const isSet = (name: string): boolean => environment.variable(name) !== undefined;
  if (!wanted) return '--no-browser';
  if (!mayAsk) return 'nothing is asked here';
  if (isSet('SSH_CONNECTION') || isSet('SSH_TTY')) return 'this is an ssh session';
  const hasDisplay = isSet('DISPLAY') || isSet('WAYLAND_DISPLAY');
  if (environment.platform === 'linux' && !hasDisplay) return 'there is no display';
  return undefined;
}

/** `url` has been checked: https, or http to this machine. Whether a browser came up nobody can tell. */
export async function openBrowser({ environment }: Context, url: string): Promise<boolean> {
  // `open` passes on all there is.
  environment.hideFromChildren();
  try {
    const { default: open } = await import('open');
    const child = await open(url);
    // It reports a missing program after it was started; nobody waits for it.
    child.on('error', () => undefined);
    return true;
  } catch {
    return false;
  }
}
