/** What somebody finds who opens the server's own address: what it is, and where to go with a code. */
import { html } from './html.js';
import type { Page } from './page.js';

export function homePage(): Page {
  return {
    status: 200,
    title: 'Welcome',
    body: html`<h1>This is an ailsd server</h1>
<p>Through it your terminal, files and programs reach the sandboxes that AI agents work in. Use it from a terminal, with the <b>ailsd</b> command.</p>
<p><a href="/device">Enter a code</a> that your terminal shows.</p>`,
  };
}
