import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { html } from '../../../src/server/web/html.js';
import { renderPage } from '../../../src/server/web/page.js';
import { STYLE, STYLE_SOURCE } from '../../../src/server/web/style.js';

describe('HTML as a value', () => {
  it('what is put in is text, between tags and in attributes', () => {
    const made = html`<p title="${'"><b>'}">${"<script>&amp;'"}${1}</p>`;
    expect(made.toString()).toBe(
      '<p title="&#34;&#62;&#60;b&#62;">&#60;script&#62;&#38;amp;&#39;1</p>',
    );
  });

  it('what is HTML itself stays so, in lists too; what is not there leaves nothing', () => {
    const items = ['a', '<b>'].map((item) => html`<li>${item}</li>`);
    expect(html`<ul>${items}${false}${undefined}${[]}</ul>`.toString()).toBe(
      '<ul><li>a</li><li>&#60;b&#62;</li></ul>',
    );
  });

  it('no text whatever makes a tag, ends an attribute or turns the line around', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const inside = html`${text}`.toString();
        expect(inside).not.toMatch(
          /[<>"'`\u0000-\u0008\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/,
        );
        expect(inside.replace(/&#\d+;/g, '')).not.toContain('&');
      }),
    );
  });
});

describe('a page', () => {
  it('may load nothing, run nothing and be framed by nobody', () => {
    const { headers, text, status } = renderPage({
      status: 418,
      title: '<T>',
      body: html`<h1>Hi</h1>`,
    });
    expect(status).toBe(418);
    expect(headers).toMatchObject({
      'content-security-policy': `default-src 'none'; style-src ${STYLE_SOURCE}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect(text).toContain(`<style>${STYLE}</style>`);
    expect(text).toContain('<title>&#60;T&#62; · ailsd</title>');
    expect(text).not.toMatch(/<script|src=|href=|style=|onclick|https?:/);
    expect(STYLE).not.toMatch(/<|url\(|@import/);
  });

  it('its forms lead only where they are said to', () => {
    const { headers } = renderPage({
      status: 200,
      title: 'T',
      body: html``,
      formTargets: ['http://127.0.0.1:1234'],
    });
    expect(headers['content-security-policy']).toContain(
      "form-action 'self' http://127.0.0.1:1234;",
    );
  });
});
