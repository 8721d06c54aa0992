/** What `ailsd help TOPIC` says about things that belong to no single command. */
import { columns } from './columns.js';
import type { Context } from './context.js';
import { EXIT, EXIT_MEANINGS, EXIT_NOTE } from './exit-codes.js';
import { SETTING_NAMES, setting } from './settings/table.js';

export const TOPIC_NAMES = ['exit-codes', 'environment', 'json'] as const;
export type TopicName = (typeof TOPIC_NAMES)[number];

export function printTopic(topic: TopicName, context: Context): void {
  if (topic === 'exit-codes') printExitCodes(context);
  else if (topic === 'environment') printEnvironment(context);
  else printJson(context);
}

function printExitCodes({ output, style }: Context): void {
  const rows = EXIT_ROWS.map(([name, code]) => ({ code, name, meaning: EXIT_MEANINGS[name] }));
  output.list(rows, () => {
    const table = columns(rows.map(({ code, meaning }) => [String(code).padStart(5), meaning]));
    return `${style.bold('Exit codes:')}\n${table}\n\n${EXIT_NOTE}\n`;
  });
}

const EXIT_ROWS = [
  ['done', EXIT.done],
  ['failed', EXIT.failed],
  ['usage', EXIT.usage],
  ['notFound', EXIT.notFound],
  ['login', EXIT.login],
  ['notAllowed', EXIT.notAllowed],
  ['conflict', EXIT.conflict],
  ['unavailable', EXIT.unavailable],
  ['quota', EXIT.quota],
  ['timeout', EXIT.timeout],
  ['notStarted', EXIT.notStarted],
  ['hungUp', EXIT.hungUp],
  ['interrupted', EXIT.interrupted],
  ['terminated', EXIT.terminated],
  ['lost', EXIT.lost],
] as const;

/** Variables that are no setting. A yes-or-no variable is on unless it is empty, 0, false, no or off. */
const OTHER_VARIABLES = [
  ['AILSD_PROFILE', 'which profile’s settings and login to use'],
  ['AILSD_CONFIG_DIR', 'the folder settings are kept in'],
  ['AILSD_CACHE_DIR', 'the folder for what may be lost: which sandbox a thread had'],
  ['AILSD_SANDBOX', 'access to a sandbox that was negotiated elsewhere: JSON, or a file of it'],
  ['AILSD_TOKEN', 'an access token; used as it is, before any login'],
  ['AILSD_TOKEN_FILE', 'a file that holds one, read anew each time'],
  ['AILSD_CLIENT_ID', 'which service to be; its secret is the next or the one after'],
  ['AILSD_CLIENT_SECRET', 'that service’s secret'],
  ['AILSD_CLIENT_SECRET_FILE', 'a file that holds it, read anew each time'],
  ['AILSD_IDENTITY_TOKEN', 'a CI job’s identity token'],
  ['AILSD_IDENTITY_TOKEN_FILE', 'a file that holds one, read anew each time'],
  ['AILSD_OIDC', 'github: ask the job for its identity token'],
  ['HTTPS_PROXY', 'the proxy to https servers; HTTP_PROXY to others, NO_PROXY for none'],
  ['AILSD_NO_INPUT', 'never ask anything; CI does the same'],
  ['AILSD_DEBUG', 'tell on stderr what happens'],
  ['AILSD_QUIET', 'no notices on stderr, only errors'],
  ['AILSD_JSON', 'print JSON'],
  ['NO_COLOR', 'no colour, whatever the terminal can do'],
  ['FORCE_COLOR', 'colour, even without a terminal'],
] as const;

function printEnvironment({ output, style }: Context): void {
  const settings = SETTING_NAMES.map((name) => {
    const { variable, summary, choices } = setting(name);
    return {
      variable,
      meaning: choices === undefined ? summary : `${summary}: ${choices.join(', ')}`,
    };
  });
  const rows = [
    ...settings,
    ...OTHER_VARIABLES.map(([variable, meaning]) => ({ variable, meaning })),
  ];
  output.list(rows, () => {
    const table = columns(rows.map(({ variable, meaning }) => [`  ${variable}`, meaning]));
    return `${style.bold('Variables:')}\n${table}\n\n${ENVIRONMENT_NOTE}\n`;
  });
}

const ENVIRONMENT_NOTE = `Every option of a command also has a variable: --some-option is AILSD_SOME_OPTION.
An option wins over its variable, that over .ailsd.json, that over the profile, that over the default.`;

function printJson({ output }: Context): void {
  output.result({ topic: 'json', text: JSON_TEXT }, () => JSON_TEXT);
}

const JSON_TEXT = `With --json (or -o json) a command prints one JSON document on stdout and nothing else;
with -o jsonl, one object a line. Names are snake_case as on the wire, times are RFC 3339
in UTC. A list is {"items": [...], "next_cursor": null}.

Errors are one line on stderr:
  {"error": {"code": "CONFIG_INVALID", "message": "...", "retryable": false,
             "exit_code": 2, "hint": "..."}}
Switch on code or on the exit code (ailsd help exit-codes), never on the message.

AILSD_OUTPUT=json makes it the default. --help --json describes a command as data.
`;
