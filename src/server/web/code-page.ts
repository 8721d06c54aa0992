/** Where somebody types the code that a terminal shows. */
import { html } from './html.js';
import type { Page } from './page.js';
import { type SignedIn, signedInFooter } from './signed-in-footer.js';

export interface CodeView extends SignedIn {
  readonly notice?: string | undefined;
}

export function codePage(view: CodeView, status = 200): Page {
  const isWrong = view.notice !== undefined;
  return {
    status,
    title: 'Enter the code',
    footer: signedInFooter(view),
    body: html`<h1>Enter the code</h1>
<p class="muted">A terminal asked to sign in as you and shows a code of eight letters.</p>
${isWrong && html`<p class="notice" id="notice" role="alert">${view.notice}</p>`}
<form method="post" action="/device">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<div class="field"><label for="user_code">Code</label>
<input class="big" type="text" id="user_code" name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="64" required aria-describedby="code-hint${isWrong && ' notice'}">
<p class="hint" id="code-hint">Such as BCDF-GHJK. Capitals and the dash don’t matter.</p></div>
<div class="actions"><button type="submit">Continue</button></div>
</form>`,
  };
}

/** One answer for codes that never were, have run out or were used: which it is would help only a guesser. */
export function unknownCodePage(view: SignedIn): Page {
  const notice =
    'That code is not valid. It may have run out or been used already: start again in your terminal.';
  return codePage({ ...view, notice }, 404);
}
