/** How the pages look: one sheet for all, light and dark, phone and desk. Inlined, and named to the browser by its hash. */
import { createHash } from 'node:crypto';

/** Text on its ground is 4.5:1 at least, borders of controls 3:1; the browser tests measure it. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #f4f3ef; --sheet: #ffffff; --text: #1c2024; --muted: #565d66; --line: #dedbd3; --edge: #858b93;
  --accent: #2f4fa8; --accent-strong: #243f8a; --on-accent: #ffffff; --tint: #eef1fa;
  --good: #1d6b45; --bad: #a32828; --bad-tint: #fbeeee;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #111316; --sheet: #191c20; --text: #e9eaec; --muted: #a7aeb8; --line: #2c3036; --edge: #767e89;
    --accent: #a9bcff; --accent-strong: #c3d0ff; --on-accent: #10182f; --tint: #20263a;
    --good: #83d3aa; --bad: #ff9f9a; --bad-tint: #35201f;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; min-height: 100vh; display: flex; flex-direction: column; align-items: center;
  padding: clamp(1rem, 6vh, 4.5rem) 1rem 2rem; background: var(--ground); color: var(--text);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
header { width: 100%; max-width: 30rem; padding: 0 .25rem .75rem; display: flex; align-items: center; gap: .55rem;
  color: var(--muted); font-size: .9375rem; }
header svg { width: 1.25rem; height: 1.25rem; color: var(--accent); flex: none; }
header strong { color: var(--text); font-weight: 600; }
main { width: 100%; max-width: 30rem; background: var(--sheet); border: 1px solid var(--line); border-radius: 14px;
  padding: clamp(1.25rem, 5vw, 2rem); }
footer { width: 100%; max-width: 30rem; padding: .9rem .25rem 0; color: var(--muted); font-size: .875rem;
  display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: center; }
footer form { margin: 0; }
h1 { margin: 0 0 .5rem; font-size: 1.375rem; line-height: 1.3; font-weight: 650; letter-spacing: -.01em; }
h2 { margin: 1.6rem 0 .5rem; font-size: .9375rem; font-weight: 600; }
p { margin: 0 0 1rem; }
main > :last-child { margin-bottom: 0; }
a { color: var(--accent); text-underline-offset: .2em; }
.muted, .hint { color: var(--muted); }
.hint { font-size: .875rem; margin: .35rem 0 0; }
.code { margin: 1rem 0 .35rem; padding: .9rem 1rem; background: var(--tint); border-radius: 10px; text-align: center;
  font: 600 1.75rem/1.2 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  letter-spacing: .12em; overflow-wrap: anywhere; }
dl { margin: 0; border: 1px solid var(--line); border-radius: 10px; }
dl div { display: grid; grid-template-columns: 6.5rem 1fr; gap: .75rem; padding: .55rem .85rem; }
dl div + div { border-top: 1px solid var(--line); }
dt { color: var(--muted); font-size: .875rem; line-height: 1.7; }
dd { margin: 0; overflow-wrap: anywhere; }
fieldset { margin: 1.6rem 0 0; padding: 0; border: 0; min-width: 0; }
legend { padding: 0; margin-bottom: .35rem; font-size: .9375rem; font-weight: 600; }
label { display: block; font-size: .9375rem; font-weight: 600; }
.field { margin-top: 1.1rem; }
.choice { display: flex; gap: .7rem; align-items: flex-start; padding: .5rem .25rem; font-weight: 400; cursor: pointer;
  border-radius: 8px; }
.choice input { width: 1.15rem; height: 1.15rem; margin: .2rem 0 0; accent-color: var(--accent); flex: none; }
.choice b { font-weight: 600; }
.choice span { min-width: 0; overflow-wrap: anywhere; }
.row { display: flex; flex-wrap: wrap; gap: 0 1.25rem; }
input[type=text], input[type=password] {
  display: block; width: 100%; margin-top: .35rem; min-height: 2.75rem; padding: .5rem .8rem; font: inherit;
  color: inherit; background: var(--sheet); border: 1px solid var(--edge); border-radius: 10px;
}
input.big { font: 600 1.375rem/1.3 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  letter-spacing: .12em; text-transform: uppercase; text-align: center; min-height: 3.25rem; }
.actions { display: flex; gap: .75rem; margin-top: 1.75rem; }
.actions button { flex: 1; }
button {
  min-height: 2.875rem; padding: .55rem 1.1rem; font: inherit; font-weight: 600; border-radius: 10px; cursor: pointer;
  border: 1px solid var(--accent); background: var(--accent); color: var(--on-accent); width: 100%;
}
button:hover { background: var(--accent-strong); border-color: var(--accent-strong); }
button.quiet { background: transparent; color: var(--text); border-color: var(--edge); }
button.quiet:hover { background: var(--tint); }
button.link { width: auto; min-height: 0; padding: .2rem 0; border: 0; background: none; color: var(--accent);
  font-weight: 500; text-decoration: underline; text-underline-offset: .2em; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.choice:focus-within { background: var(--tint); }
.notice { margin: 0 0 1.1rem; padding: .7rem .9rem; border-radius: 10px; background: var(--bad-tint); color: var(--bad); }
input + .notice { margin: .6rem 0; }
.or { display: flex; align-items: center; gap: .75rem; margin: 1.25rem 0; color: var(--muted); font-size: .875rem; }
.or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.mark { width: 2.5rem; height: 2.5rem; margin-bottom: .9rem; display: block; }
.mark.good { color: var(--good); } .mark.bad { color: var(--bad); } .mark.plain { color: var(--muted); }
@media (max-width: 26rem) {
  dl div { grid-template-columns: 1fr; gap: 0; }
  .code { font-size: 1.5rem; }
}
@media (prefers-reduced-motion: no-preference) { button { transition: background-color .12s, border-color .12s; } }
@media (forced-colors: active) { main, button { border: 1px solid; } }
`;

/** The only style a page may have, as a `style-src` of its Content-Security-Policy. */
export const STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;
