/** Who is signed in, and the way out. */
import { type Html, html } from './html.js';

export interface SignedIn {
  readonly xsrf: string;
  /** The account, as people know it. */
  readonly account: string;
}

export function signedInFooter({ xsrf, account }: SignedIn): Html {
  return html`<span>Signed in as ${account}</span>
<form method="post" action="/sign-out"><input type="hidden" name="xsrf" value="${xsrf}"><button type="submit" class="link">Sign out</button></form>`;
}
