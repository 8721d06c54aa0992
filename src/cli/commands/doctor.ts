/** `ailsd doctor`: looks at everything ailsd needs, here and at the server, and says what to do about what is missing. */
import { AilsdError } from '../../protocol/errors.js';
import { columns } from '../columns.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { type Check, type Finding, runCheck } from '../doctor/check.js';
import { CHECKS } from '../doctor/checks.js';
import { escapeText } from '../escape.js';
import type { Style } from '../style.js';

export function doctorCommand(context: Context): Command {
  return new Command('doctor')
    .description('check that ailsd has what it needs, here and at the server')
    .example('ailsd doctor', 'look at everything')
    .example('ailsd doctor --json', 'for a bug report or a script')
    .action(() => runDoctor(context));
}

async function runDoctor(context: Context): Promise<void> {
  const { output, style } = context;
  const findings = await Promise.all(
    CHECKS.map(async (check) => ({ check, finding: await runCheck(check, context) })),
  );
  context.signal.throwIfAborted();
  const failed = findings
    .filter(({ finding }) => finding.state === 'failed')
    .map(({ check }) => check.name);
  const checks = findings.map(({ check, finding }) => ({
    name: check.name,
    hint: null,
    ...finding,
  }));
  output.result({ ok: failed.length === 0, checks }, () => render(findings, style));
  if (failed.length > 0) {
    throw new AilsdError('UNHEALTHY', `${failed.join(', ')} failed`, { details: { failed } });
  }
}

type Row = { readonly check: Check; readonly finding: Finding };

function render(rows: readonly Row[], style: Style): string {
  return columns(
    rows.flatMap(({ check, finding }) => {
      const first = [mark(finding.state, style), check.name, escapeText(finding.detail)];
      const hint =
        finding.hint === undefined ? [] : [['', '', style.dim(escapeText(`→ ${finding.hint}`))]];
      return [first, ...hint];
    }),
  );
}

function mark(state: Finding['state'], style: Style): string {
  switch (state) {
    case 'ok':
      return style.good('ok');
    case 'warning':
      return style.warn('warning');
    case 'failed':
      return style.bad('failed');
    case 'skipped':
      return style.dim('skipped');
  }
}
