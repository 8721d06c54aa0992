/** Waits for somebody to decide in a browser, and opens that browser when Enter is typed. */
import type { Context } from '../context.js';
import { openBrowser, whyNoBrowser } from './browser.js';
import { onEnter } from './enter-key.js';
import { showWaiting, type Waiting } from './waiting.js';

export interface ApprovalOptions {
  /** What Enter opens. */
  readonly url: string;
  readonly text: string;
  readonly mayOpenBrowser: boolean;
}

export async function whileWaiting<T>(
  context: Context,
  { url, text, mayOpenBrowser }: ApprovalOptions,
  work: (waiting: Waiting) => Promise<T>,
): Promise<T> {
  const canOpen = whyNoBrowser(context, mayOpenBrowser) === undefined;
  const shown = canOpen ? `${text} · Enter opens the browser here` : text;
  using waiting = await showWaiting(context, shown);
  if (!canOpen) return await work(waiting);
  using _key = onEnter(() => {
    waiting.afterEnter();
    void openBrowser(context, url).then((opened) => {
      if (!opened) waiting.say('no browser could be opened; use the address above');
    });
  });
  return await work(waiting);
}
