/** The promises this project makes: each has an id that tests cite. A promise without `open` must be proven by a passing test. */
export interface Requirement {
  readonly id: string;
  readonly sentence: string;
  /** Where the promise comes from: a section of the contract, a seed, the security cases, or this house. */
  readonly source: string;
  /** Why it is not proven yet. A test may cite an open promise only as an expected failure. */
  readonly open?: string;
}

/** A test's title, with the promises it proves; the requirements reporter reads them back. */
export function proves(title: string, ...ids: [RequirementId, ...RequirementId[]]): string {
  return `${title} [${ids.join(' ')}]`;
}

export type RequirementId = (typeof REQUIREMENTS)[number]['id'];

export const REQUIREMENTS = [
  {
    id: 'HO-01',
    sentence: 'The project builds with `npm ci` and its packed tarball installs globally and runs',
    source: 'house',
  },
  { id: 'HO-02', sentence: 'A program that was not built says so in one line', source: 'house' },
  {
    id: 'HO-03',
    sentence: 'No room imports through a door it does not have, and a violation names the door',
    source: 'house',
  },
  { id: 'HO-04', sentence: "The version the program reports is the package's", source: 'house' },
  {
    id: 'HO-05',
    sentence: 'Generated files (OpenAPI, completions, help, docs tables) are what the source makes',
    source: 'house',
  },
  {
    id: 'PR-01',
    sentence: "Fresh ids carry their kind's prefix; thread ids are 1 to 128 of A-Za-z0-9._:-",
    source: 'contract 1',
  },
  {
    id: 'PR-02',
    sentence:
      'Every error has one row: status, close, exit, retryable, hint; MVP and full names are pairs',
    source: 'contract 3.1',
  },
  {
    id: 'PR-03',
    sentence: 'The four refusals close with 1008 and their exact reasons, and are not retried',
    source: 'seed 000, contract 4',
  },
  {
    id: 'PR-04',
    sentence:
      'OAuth scopes, capabilities and the S2 vocabulary map onto each other as the contract says',
    source: 'contract 4',
  },
  {
    id: 'PR-05',
    sentence: 'Granted capabilities are never more than any one of the limits allows',
    source: 'contract 4',
  },
  {
    id: 'PR-06',
    sentence:
      "Every request and answer of the seeds' examples passes its schema; bad ones name the field",
    source: 'seeds 000 to 004',
  },
  {
    id: 'PR-07',
    sentence: 'Frames: decoding what was encoded gives the same frame, in both codecs',
    source: 'contract 5',
  },
  {
    id: 'PR-08',
    sentence: 'Frames: decoding is total; any bytes give a frame or a typed error',
    source: 'contract 5',
  },
  {
    id: 'PR-09',
    sentence: 'Bytes that are not UTF-8 survive in both codecs',
    source: 'contract 5',
  },
  {
    id: 'PR-10',
    sentence:
      'Every path of the contract is a route, with its scope or capability, and is in the OpenAPI document',
    source: 'contract 2 to 5',
  },
  {
    id: 'PR-11',
    sentence:
      'Token claims are checked by schema: kinds of token are never mistaken for one another',
    source: 'contract 2, 4',
  },
  {
    id: 'ST-01',
    sentence:
      'Any sequence of cuts, duplicates and delays delivers the same bytes once and in order',
    source: 'contract 5',
  },
  {
    id: 'ST-02',
    sentence: 'No buffer grows past its bound, and reaching it is an outcome the caller sees',
    source: 'house',
  },
  {
    id: 'ST-03',
    sentence: 'Reconnects come quickly at first, then with bounded, jittered growth',
    source: 'contract 5',
  },
  {
    id: 'ST-04',
    sentence: 'A scope closes what was opened in it, last first, also when closing fails',
    source: 'house',
  },
  { id: 'ST-05', sentence: 'A secret prints as [secret] however it is printed', source: 'house' },
  {
    id: 'CM-01',
    sentence: 'Settings come from option, variable, project file, profile, default, in that order',
    source: 'contract 8',
  },
  {
    id: 'CM-02',
    sentence:
      'Every error is one line with its code and a hint, or the JSON envelope, on stderr, and never a stack',
    source: 'contract 8',
  },
  {
    id: 'CM-03',
    sentence: 'Exit codes are those of the table, and `help exit-codes` prints them',
    source: 'contract 8',
  },
  {
    id: 'CM-04',
    sentence: 'Unknown commands, options and settings suggest the nearest and exit 2',
    source: 'house',
  },
  {
    id: 'CM-05',
    sentence: 'Strings from outside are printed with control and bidi characters escaped',
    source: 'CL-01',
  },
  {
    id: 'CM-06',
    sentence: 'With --json stdout holds one valid document and nothing else',
    source: 'contract 8',
  },
  {
    id: 'CM-07',
    sentence: 'Ctrl-C ends with 130 and SIGTERM with 143, after cleaning up',
    source: 'contract 8',
  },
  {
    id: 'CM-08',
    sentence: 'A closed or broken standard output ends quietly; a full one is an error',
    source: 'CL-01',
  },
  {
    id: 'CM-09',
    sentence:
      "No colour without a terminal or with NO_COLOR; text is wrapped to the terminal's width",
    source: 'CL-01',
  },
  { id: 'CM-10', sentence: 'No command loads what it does not use', source: 'performance' },
  {
    id: 'CM-11',
    sentence:
      'Bad surroundings (config, HOME, permissions) give a clear error and exit 2, or do not matter',
    source: 'house',
  },
  { id: 'CM-12', sentence: 'The completions work in real bash, zsh and fish', source: 'house' },
  {
    id: 'CM-13',
    sentence: 'Every command has help with examples, kept as a golden',
    source: 'house',
  },
  {
    id: 'CM-14',
    sentence:
      'config get, set, unset, list and path work, say where each value comes from, and never lose a file',
    source: 'contract 8',
  },
  {
    id: 'CM-15',
    sentence:
      'doctor checks Node, PTY, keychain, watches, clock and terminal, each within a bound, and says what to do',
    source: 'house',
  },
  {
    id: 'CM-16',
    sentence: 'A setting in a cloned repository can never redirect credentials',
    source: 'threat model',
  },
  {
    id: 'OA-01',
    sentence: 'The client keeps the polling contract',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-02',
    sentence: 'The issuer enforces the pace',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-03',
    sentence: 'Every ending of a login',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-04',
    sentence: 'A device code and a refresh token are used once, also under concurrency',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-05',
    sentence: 'Guessing user codes',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-06',
    sentence: 'The approval page',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-07',
    sentence: '50 processes, one refresh',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-08',
    sentence: 'Reuse of an old refresh token ends the family',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-09',
    sentence: 'The credential file survives crashes, full disks and traps',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-10',
    sentence: 'Keychain locked, absent or hanging',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-11',
    sentence: 'Hostile strings from an issuer',
    source: 'SECURITY-CASES',
  },
  {
    id: 'OA-12',
    sentence: 'Token exchange only narrows',
    source: 'SECURITY-CASES',
  },
  {
    id: 'TK-01',
    sentence: 'Access-token matrix at broker and relay',
    source: 'SECURITY-CASES',
  },
  {
    id: 'TK-02',
    sentence: 'Sandbox-token matrix at the dataplane',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Broker',
  },
  {
    id: 'TK-03',
    sentence: 'Capability × operation matrix',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Broker',
  },
  {
    id: 'TK-04',
    sentence: 'Refresh needs proof of possession',
    source: 'SECURITY-CASES',
  },
  {
    id: 'TK-05',
    sentence: 'Revocation and key rotation reach live connections',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Broker',
  },
  {
    id: 'TK-06',
    sentence: 'Invites, rooms, elevation',
    source: 'SECURITY-CASES',
  },
  {
    id: 'TK-07',
    sentence: 'No secret in any artefact',
    source: 'SECURITY-CASES',
    open: 'waits for the parts that handle sandbox keys and tokens',
  },
  { id: 'BR-01', sentence: 'One sandbox per thread', source: 'SECURITY-CASES' },
  { id: 'BR-02', sentence: 'Idempotency-Key', source: 'SECURITY-CASES' },
  { id: 'BR-03', sentence: 'Crash at every step of ensure', source: 'SECURITY-CASES' },
  {
    id: 'BR-04',
    sentence: "Another owner's things do not exist",
    source: 'SECURITY-CASES',
  },
  { id: 'BR-05', sentence: 'A provider in trouble', source: 'SECURITY-CASES' },
  { id: 'BR-06', sentence: 'Release races', source: 'SECURITY-CASES' },
  { id: 'BR-07', sentence: 'Leases, reaper and skewed clocks', source: 'SECURITY-CASES' },
  {
    id: 'BR-08',
    sentence: 'The database goes away',
    source: 'SECURITY-CASES',
  },
  {
    id: 'BR-09',
    sentence: 'Bad input',
    source: 'SECURITY-CASES',
  },
  {
    id: 'QU-01',
    sentence: 'The cap is exact',
    source: 'SECURITY-CASES',
  },
  {
    id: 'QU-02',
    sentence: 'Kill switch, two dimensions, rollover',
    source: 'SECURITY-CASES',
  },
  {
    id: 'QU-03',
    sentence: 'One audit row, whatever happens',
    source: 'SECURITY-CASES',
  },
  {
    id: 'QU-04',
    sentence: 'Append-only by the database',
    source: 'SECURITY-CASES',
  },
  {
    id: 'QU-05',
    sentence: 'Fail closed',
    source: 'SECURITY-CASES',
  },
  {
    id: 'QU-06',
    sentence: 'Truncation and redaction',
    source: 'SECURITY-CASES',
  },
  {
    id: 'WS-01',
    sentence: 'Five seconds to authenticate',
    source: 'SECURITY-CASES',
  },
  {
    id: 'WS-02',
    sentence: 'Unauthenticated floods',
    source: 'SECURITY-CASES',
  },
  {
    id: 'WS-03',
    sentence: 'Origin, and tokens in URLs',
    source: 'SECURITY-CASES',
  },
  {
    id: 'WS-04',
    sentence: 'Oversize, fragmented, compressed, malformed',
    source: 'SECURITY-CASES',
  },
  {
    id: 'WS-05',
    sentence: 'Expiry on a live connection; no retry after 1008',
    source: 'SECURITY-CASES',
  },
  {
    id: 'PT-01',
    sentence: 'Output survives cuts byte for byte',
    source: 'SECURITY-CASES',
  },
  {
    id: 'PT-02',
    sentence: 'Input is applied once',
    source: 'SECURITY-CASES',
  },
  {
    id: 'PT-03',
    sentence: 'The tail of a fast program',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Attach',
  },
  {
    id: 'PT-04',
    sentence: 'Bytes, not text',
    source: 'SECURITY-CASES',
  },
  {
    id: 'PT-05',
    sentence: 'Flow control and observers',
    source: 'SECURITY-CASES',
  },
  {
    id: 'PT-06',
    sentence: 'Past the ring, and exit while away',
    source: 'SECURITY-CASES',
  },
  {
    id: 'PT-07',
    sentence: 'Signals, job control, hygiene',
    source: 'SECURITY-CASES',
  },
  {
    id: 'EX-01',
    sentence: 'A timeout ends the whole tree',
    source: 'SECURITY-CASES',
  },
  {
    id: 'EX-02',
    sentence: 'Floods, arguments, exit codes',
    source: 'SECURITY-CASES',
  },
  {
    id: 'FI-01',
    sentence: 'No path leaves the workspace',
    source: 'SECURITY-CASES',
  },
  {
    id: 'FI-02',
    sentence: 'A link swapped in mid-call',
    source: 'SECURITY-CASES',
  },
  {
    id: 'FI-03',
    sentence: 'Atomic replace, conditions, interruption',
    source: 'SECURITY-CASES',
  },
  {
    id: 'FI-04',
    sentence: 'Archives and odd files',
    source: 'SECURITY-CASES',
  },
  {
    id: 'SY-01',
    sentence: 'Kill -9 anywhere',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Sync',
  },
  {
    id: 'SY-02',
    sentence: 'Deletion safety',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Sync',
  },
  {
    id: 'SY-03',
    sentence: 'Conflicts and unseen edits',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Sync',
  },
  {
    id: 'SY-04',
    sentence: 'Files that change while they move',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Sync',
  },
  {
    id: 'SY-05',
    sentence: 'Links, case, normal forms, modes',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Sync',
  },
  {
    id: 'SY-06',
    sentence: 'Unreadable, read-only, full',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Sync',
  },
  {
    id: 'SY-07',
    sentence: 'Watchers that miss events',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Sync',
  },
  {
    id: 'IS-01',
    sentence: "The sandbox's own secrets are out of its reach",
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Exec and code',
  },
  {
    id: 'IS-02',
    sentence: 'Bombs',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Exec and code',
  },
  {
    id: 'IS-03',
    sentence: 'Environment and egress',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Exec and code',
  },
  {
    id: 'RL-01',
    sentence: 'The relay dials only what it registered',
    source: 'SECURITY-CASES',
  },
  {
    id: 'RL-02',
    sentence: 'Slow and hostile ends',
    source: 'SECURITY-CASES',
    open: 'waits for the capability: Broker',
  },
  {
    id: 'CL-01',
    sentence: 'A well-behaved program',
    source: 'SECURITY-CASES',
    open: 'waits for the commands that pass bytes raw, and for raw mode',
  },
] as const satisfies readonly Requirement[];
