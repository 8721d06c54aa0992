/** A shell one can attach to, leave and come back to, over a bare WebSocket. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { attach, connect } from './support/bare-client.js';
import { type Served, serveSandbox } from './support/sandboxd.js';

let served: Served;
let url: string;
beforeAll(async () => {
  served = await serveSandbox();
  url = `${served.ws}/v1/shell/ws`;
});
afterAll(() => served[Symbol.asyncDispose]());

it('a shell echoes, runs commands, and ends with its exit code', async () => {
  using client = await attach(url, served.token(), { shell_id: 'new', cols: 100, rows: 30 });
  const ready = await client.frame('ready');
  expect(ready).toMatchObject({ state: 'fresh', role: 'writer', offset: 0, cols: 100, rows: 30 });
  client.type('stty size; exit 7\r');
  await client.shows('30 100');
  expect(await client.frame('exit')).toMatchObject({ exit_code: 7, origin: 'remote' });
  expect(await client.closed()).toEqual({ code: 1000, reason: '' });
});

it('a client that knows nothing but auth and stdin gets the main shell', async () => {
  using client = await connect(`${served.ws}/ws`, { binary: false });
  client.send({ type: 'auth', token: served.token() });
  await client.frame('auth_ok');
  client.send({ type: 'stdin', data: 'echo $((6*7))\r' });
  await client.shows('42');
});

it('a client that comes back gets what it missed, once', async () => {
  const start = { shell_id: 'new', client_id: 'c1', command: ['/bin/cat'] };
  const first = await attach(url, served.token(), start);
  const { shell_id } = await first.frame('ready');
  first.stdin(0, 'one\r');
  await first.shows('one\r\none');
  const offset = first.bytes().length;
  first.socket.terminate();
  using second = await attach(url, served.token(), {
    shell_id,
    client_id: 'c1',
    offset,
    input_offset: 0,
  });
  expect(await second.frame('ready')).toMatchObject({ state: 'resumed', offset, input_offset: 4 });
  second.stdin(0, 'one\rtwo\r');
  await second.shows('two\r\ntwo');
  expect(second.output()).not.toContain('one');
});

it('one who comes new gets the screen, then what follows', async () => {
  using writer = await attach(url, served.token(), { shell_id: 'new', command: ['/bin/cat'] });
  const { shell_id } = await writer.frame('ready');
  writer.type('hello\r');
  await writer.shows('hello\r\nhello');
  using other = await attach(url, served.token({ scope: 'shell:ro' }), { shell_id });
  expect(await other.frame('ready')).toMatchObject({ state: 'snapshot', role: 'observer' });
  expect((await other.frame('snapshot')).screen).toContain('hello\r\nhello');
  writer.type('again\r');
  await other.shows('again\r\nagain');
  other.type('x');
  expect(await other.frame('error')).toMatchObject({
    code: 'CAPABILITY_DENIED',
    capability: 'shell',
  });
});
