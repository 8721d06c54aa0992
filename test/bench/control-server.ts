/** One process for the control bench: the whole server, or a bare Hono route with the same token check and one statement. */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { systemClock } from '../../src/base/clock.js';
import { Secret } from '../../src/base/secret.js';
import { IssuerKeys } from '../../src/server/store/keys.js';
import { openStore } from '../../src/server/store/open-store.js';
import { createAccessTokenVerifier } from '../../src/server/tokens/access-token.js';
import { publishedKeys } from '../../src/server/tokens/signing-keys.js';
import { wholeServer } from '../support/whole-server.js';

const server = await wholeServer({
  file: { broker: { requests_per_minute: 0, address_requests_per_minute: 0 }, log_level: 'error' },
  logLevel: 'error',
});
const token = server.token();
const reply = await fetch(`${server.url}/v1/sandbox/sessions`, {
  method: 'POST',
  headers: { Authorization: `Bearer ${token}`, Prefer: 'wait=10' },
  body: JSON.stringify({ thread_id: 'thr_bench', mode: 'ensure' }),
});
const { session_id: sessionId } = JSON.parse(await reply.text());

/** The same store, through connections of its own. */
const db = await openStore(server.store);
const verify = createAccessTokenVerifier({
  issuer: server.url,
  audience: server.url,
  clock: systemClock,
  jwks: { fetch: async () => publishedKeys(await new IssuerKeys(db).list('signing'), Date.now()) },
});
const bare = new Hono();
const bearer = (text: string | undefined) =>
  verify(new Secret(text?.slice('Bearer '.length) ?? ''));
bare.get('/read/:id', async (context) => {
  await bearer(context.req.header('authorization'));
  const rows = await db.query('SELECT * FROM sessions WHERE id = ?', [context.req.param('id')]);
  return context.json({ ...rows[0] });
});
await db.run('CREATE TABLE IF NOT EXISTS bench (id TEXT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)');
let written = 0;
bare.post('/write', async (context) => {
  await bearer(context.req.header('authorization'));
  await context.req.json();
  written += 1;
  const id = String(written);
  // As many rows as an `ensure` has to write: the token's and the audit's. Those of others share the commit.
  await db.transaction(async (tx) => {
    await tx.query('SELECT * FROM sessions WHERE id = ?', [sessionId]);
    await tx.run('INSERT INTO bench VALUES (?, 1)', [id]);
    await tx.run('INSERT INTO bench VALUES (?, 1)', [`${id} again`]);
  });
  return context.json({ id });
});
const listening = serve({ fetch: bare.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  const urls = { url: server.url, bareUrl: `http://127.0.0.1:${port}` };
  process.stdout.write(`${JSON.stringify({ ...urls, token, sessionId })}\n`);
});
process.stdin.on('end', async () => {
  listening.close();
  await server[Symbol.asyncDispose]();
  process.exit();
});
process.stdin.resume();
