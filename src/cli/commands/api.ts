/** `ailsd api`: any request to the server with the login in use, for what no command does. */
import { InvalidArgumentError } from 'commander';
import { Command } from '../command.js';
import type { Context } from '../context.js';

export interface ApiOptions {
  readonly data?: string;
  readonly header?: Readonly<Record<string, string>>;
}

export function apiCommand(context: Context): Command {
  return new Command('api')
    .argument('<method>', 'GET, POST, PUT, PATCH or DELETE')
    .argument('<path>', 'a path of the server, with its query')
    .option('-d, --data <json>', 'what to send: JSON, @FILE, or - for standard input')
    .option('--header <name:value>', 'a header to send; may be repeated', collectHeaders)
    .description('send any request to the server, with the login in use')
    .example('ailsd api GET /v1/whoami', 'who am I')
    .example('ailsd api GET "/v1/sandboxes?state=active"', 'with a query')
    .example(
      'ailsd api POST /v1/sandbox/sessions --data \'{"thread_id":"thr_demo","mode":"get"}\'',
      'with a body',
    )
    .example('ailsd api PUT /admin/clients/svc_1 --data @policy.json', 'from a file')
    .action(async (method: string, path: string, options: ApiOptions) => {
      const { runApi } = await import('../sessions/api.js');
      await runApi(context, method, path, options);
    });
}

/** Who is asking, and how much is sent, is not the caller's to say. */
const OURS = /^(authorization|content-length|host|connection|transfer-encoding)$/i;

function collectHeaders(
  value: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name = '', text = ''] = /^([A-Za-z0-9-]{1,64})\s*:\s*([\x20-\x7e]*)$/.exec(value) ?? [];
  if (name === '') throw new InvalidArgumentError('Write it as name:value.');
  if (OURS.test(name)) throw new InvalidArgumentError(`${name} is set by this program.`);
  return { ...before, [name.toLowerCase()]: text };
}
