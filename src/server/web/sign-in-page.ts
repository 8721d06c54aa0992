/** Where somebody says who they are: a local account, the company's login, or both. */
import { html } from './html.js';
import type { Page } from './page.js';

export interface SignInView {
  readonly xsrf: string;
  /** Where it goes on afterwards: a path of ours. */
  readonly next: string;
  readonly hasLocalAccounts: boolean;
  /** The company login, by the name people know it under. */
  readonly upstream?: { readonly name: string; readonly origin: string } | undefined;
  readonly login?: string | undefined;
  readonly notice?: string | undefined;
}

export function signInPage(view: SignInView, status = 200): Page {
  const { upstream, notice } = view;
  const isWrong = notice !== undefined;
  const local = html`<form method="post" action="/sign-in">
${hiddenFields(view)}
<div class="field"><label for="login">Account</label>
<input type="text" id="login" name="login" value="${view.login ?? ''}" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="128" required${isWrong && html` aria-describedby="notice"`}></div>
<div class="field"><label for="password">Password</label>
<input type="password" id="password" name="password" autocomplete="current-password" maxlength="1024" required${isWrong && html` aria-describedby="notice"`}></div>
<div class="actions"><button type="submit">Sign in</button></div>
</form>`;
  const company =
    upstream !== undefined &&
    html`<form method="post" action="/sign-in/company">
${hiddenFields(view)}
<button type="submit"${view.hasLocalAccounts && html` class="quiet"`}>Continue with ${upstream.name}</button>
</form>`;
  return {
    status,
    title: 'Sign in',
    formTargets: upstream === undefined ? [] : [upstream.origin],
    body: html`<h1>Sign in</h1>
<p class="muted">Then you can look at what asked for access.</p>
${isWrong && html`<p class="notice" id="notice" role="alert">${notice}</p>`}
${view.hasLocalAccounts && local}
${view.hasLocalAccounts && company && html`<div class="or">or</div>`}
${company}`,
  };
}

function hiddenFields({ xsrf, next }: SignInView) {
  return html`<input type="hidden" name="xsrf" value="${xsrf}"><input type="hidden" name="next" value="${next}">`;
}
