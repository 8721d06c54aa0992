/** Where somebody compares the code, sees who asks for what and from where, narrows it, and approves or denies. */
import { type Html, html } from './html.js';
import type { Page } from './page.js';
import { type SignedIn, signedInFooter } from './signed-in-footer.js';

export interface ConsentView extends SignedIn {
  readonly action: string;
  readonly client: { readonly name: string; readonly id: string };
  /** Of a login on another device: shown to be compared. */
  readonly userCode?: string | undefined;
  readonly origin: Origin;
  /** What can be given; all of it is asked for. */
  readonly scopes: readonly Choice[];
  /** Asked for, but neither this client nor this account may have it. */
  readonly withheld: readonly string[];
  readonly asksIdentity: boolean;
  readonly lives: readonly Choice[];
  readonly threads: string;
  /** What is wrong with the threads. */
  readonly notice?: string | undefined;
  readonly nowMs: number;
  /** Where the browser is sent afterwards, when that is not a page of ours. */
  readonly returnsTo?: string | undefined;
}

export interface Choice {
  readonly value: string;
  readonly says: string;
  readonly isChosen: boolean;
}

export interface Origin {
  readonly address: string;
  readonly userAgent: string;
  /** As the machine calls itself, which anybody can. */
  readonly machineName?: string | undefined;
  readonly atMs: number;
}

export function consentPage(view: ConsentView, status = 200): Page {
  const { userCode, client } = view;
  return {
    status,
    title: userCode === undefined ? 'Approve access' : 'Compare the code',
    footer: signedInFooter(view),
    formTargets: view.returnsTo === undefined ? [] : [view.returnsTo],
    body: html`${userCode === undefined ? heading(client.name) : comparison(userCode)}
<h2>Who is asking</h2>
<dl>
<div><dt>Program</dt><dd>${client.name}${client.name !== client.id && html` <span class="muted">(${client.id})</span>`}</dd></div>
${view.origin.machineName !== undefined && html`<div><dt>Machine</dt><dd><span class="muted">says it is</span> ${view.origin.machineName}</dd></div>`}
<div><dt>Address</dt><dd>${view.origin.address}</dd></div>
<div><dt>When</dt><dd><time datetime="${new Date(view.origin.atMs).toISOString()}">${ago(view.nowMs - view.origin.atMs)}</time> <span class="muted">(${utc(view.origin.atMs)})</span></dd></div>
<div><dt>Sent by</dt><dd>${view.origin.userAgent || 'unknown'}</dd></div>
</dl>
<form method="post" action="${view.action}">
<button type="submit" disabled hidden></button>
<input type="hidden" name="xsrf" value="${view.xsrf}">
${userCode !== undefined && html`<input type="hidden" name="user_code" value="${userCode}">`}
${scopeBoxes(view)}
<fieldset><legend>For how long</legend><div class="row">
${view.lives.map(lifeRadio)}
</div></fieldset>
${threadsField(view)}
<div class="actions"><button type="submit" name="decision" value="deny" class="quiet">Deny</button>
<button type="submit" name="decision" value="approve">Approve</button></div>
</form>`,
  };
}

function heading(clientName: string): Html {
  return html`<h1>Let ${clientName} act for you?</h1>
<p class="muted">Approve only if you started this yourself, just now.</p>`;
}

function comparison(userCode: string): Html {
  return html`<h1>Is this the code in your terminal?</h1>
<p class="code" id="code">${userCode}</p>
<p class="muted">Approve only if you started this yourself, just now, and the code is the same. If somebody sent you here, deny.</p>`;
}

function scopeBoxes({ scopes, withheld, asksIdentity }: ConsentView): Html {
  return html`<fieldset><legend>It may</legend>
${scopes.map(
  ({ value, says, isChosen }) =>
    html`<label class="choice"><input type="checkbox" name="scope" value="${value}"${isChosen && html` checked`}><span><b>${value}</b><br><span class="muted">${says}</span></span></label>`,
)}
${scopes.length === 0 && html`<p class="hint">Nothing in sandboxes.</p>`}
${asksIdentity && html`<p class="hint">It also learns your account’s name and e-mail address.</p>`}
${withheld.length > 0 && html`<p class="hint">It asked for ${withheld.join(', ')} too, which can’t be given here.</p>`}
</fieldset>`;
}

function lifeRadio({ value, says, isChosen }: Choice): Html {
  return html`<label class="choice"><input type="radio" name="ttl" value="${value}"${isChosen && html` checked`}><span>${says}</span></label>`;
}

/** With something wrong the page opens at it. */
function threadsField({ threads, notice }: ConsentView): Html {
  const isWrong = notice !== undefined;
  return html`<div class="field"><label for="threads">Only in these threads</label>
<input type="text" id="threads" name="threads" value="${threads}" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="8192" aria-describedby="threads-hint${isWrong && ' notice'}"${isWrong && html` aria-invalid="true" autofocus`}>
${isWrong && html`<p class="notice" id="notice" role="alert">${notice}</p>`}
<p class="hint" id="threads-hint">Optional. Thread ids with spaces between; leave it empty for all of yours.</p></div>`;
}

function utc(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(11, 19)} UTC`;
}

function ago(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return 'less than a minute ago';
  const minutes = Math.floor(seconds / 60);
  return minutes === 1 ? 'a minute ago' : `${minutes} minutes ago`;
}
