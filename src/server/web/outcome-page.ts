/** How a login ended, or why it can't go on. */
import { type Html, html } from './html.js';
import type { Page } from './page.js';

export function donePage(view: {
  readonly client: string;
  readonly granted: readonly string[];
}): Page {
  return outcome(200, 'Approved', GOOD, [
    html`<p>${view.client} may now act for you. Go on in your terminal; this page can be closed.</p>`,
    html`<p class="muted">${view.granted.length > 0 ? `It was given ${view.granted.join(', ')}.` : 'It was given nothing in sandboxes.'}</p>`,
  ]);
}

export function deniedPage(): Page {
  return outcome(200, 'Denied', PLAIN, [
    html`<p>Nothing was given. If somebody sent you the code, don’t enter codes from them again.</p>`,
    html`<p class="muted">This page can be closed.</p>`,
  ]);
}

export function signedOutPage(): Page {
  return outcome(200, 'Signed out', PLAIN, [
    html`<p>You are signed out in this browser. Terminals you approved stay signed in.</p>`,
  ]);
}

/** A page that was open for too long, or came back to a browser that did not ask for it. */
export function expiredPage(): Page {
  return outcome(400, 'This page has run out', BAD, [
    html`<p>It was open for too long or was used already, and nothing was approved. Start again where you came from.</p>`,
    html`<p><a href="/device">Enter a code</a></p>`,
  ]);
}

export function tooManyPage(retryAfterSeconds: number, what: string): Page {
  const minutes = Math.ceil(retryAfterSeconds / 60);
  return {
    ...outcome(429, 'Too many attempts', BAD, [
      html`<p>There were too many ${what} from this account or address. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.</p>`,
    ]),
    retryAfterSeconds,
  };
}

/** While what it stands on is away. */
export function unavailablePage(retryAfterSeconds: number): Page {
  return {
    ...outcome(503, 'Not just now', BAD, [
      html`<p>The server can’t answer at the moment, and nothing was approved. Try again in a minute.</p>`,
    ]),
    retryAfterSeconds,
  };
}

export function errorPage(status: number, says: string): Page {
  return outcome(status, 'That did not work', BAD, [html`<p>${says}</p>`]);
}

function outcome(status: number, title: string, mark: Html, body: readonly Html[]): Page {
  return { status, title, body: html`${mark}<h1>${title}</h1>${body}` };
}

const GOOD = mark('good', html`<path d="m8 12.5 2.8 2.8L16.2 9.5"/>`);
const BAD = mark('bad', html`<path d="M12 7.5v5.5M12 16.4v.1"/>`);
const PLAIN = mark('plain', html`<path d="M8.5 12h7"/>`);

function mark(kind: string, inside: Html): Html {
  return html`<svg class="mark ${kind}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><circle cx="12" cy="12" r="9.5"/>${inside}</svg>`;
}
