/** What a process of ours ends with, and what each number tells a script. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  login: 4,
  notAllowed: 5,
  conflict: 6,
  unavailable: 7,
  quota: 8,
  timeout: 9,
  notStarted: 125,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
  lost: 255,
} as const;

export type ExitName = keyof typeof EXIT;

/** Printed by `ailsd help exit-codes`, in this order. */
export const EXIT_MEANINGS: Readonly<Record<ExitName, string>> = {
  done: 'done',
  failed: 'failed for a reason no other number names',
  usage: 'wrong usage, or a setting that cannot be used',
  notFound: 'not found',
  login: 'a login is needed, was refused, or is over',
  notAllowed: 'not allowed',
  conflict: 'a conflict, problems left over, or a sync halted for safety',
  unavailable: 'the server or the sandbox cannot be reached or is not ready',
  quota: 'a quota or rate limit was reached',
  timeout: 'a time limit set on this side ran out',
  notStarted: 'exec, run, attach: our own failure before or around the command',
  hungUp: 'ended because its terminal went away (SIGHUP)',
  interrupted: 'ended by Ctrl-C (SIGINT)',
  terminated: 'ended by SIGTERM',
  lost: 'exec, run, attach: the connection was lost and the outcome is not known',
};

/** Said once below the table: the one case in which the number is not ours. */
export const EXIT_NOTE =
  'exec, run and attach otherwise end with the remote command’s own code, or 128 + n if signal n ended it; --status-file says which it was.';
