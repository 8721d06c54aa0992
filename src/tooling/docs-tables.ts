/** The tables of docs/protocol.md, made from the same source that client and server run on. */
import { EXIT, EXIT_MEANINGS } from '../cli/exit-codes.js';
import {
  CAPABILITIES,
  DEFAULT_CAPABILITIES,
  SCOPE_CAPABILITIES,
} from '../protocol/capabilities.js';
import { CLOSES } from '../protocol/closes.js';
import { ERRORS, FACE_NAMES } from '../protocol/errors.js';
import { ID_PREFIXES } from '../protocol/ids.js';
import { FAMILIES, type Route } from '../protocol/routes/route.js';
import { ROUTES } from '../protocol/routes.js';
import { SCOPES } from '../protocol/scopes.js';

export function docsTables(): Map<string, string> {
  return new Map([
    [
      'ids',
      table(
        ['kind', 'begins with'],
        Object.entries(ID_PREFIXES).map(([kind, prefix]) => [kind, code(prefix)]),
      ),
    ],
    ['errors', errors()],
    [
      'faces',
      table(
        ['MVP', 'full'],
        FACE_NAMES.map(({ mvp, full }) => [code(mvp), code(full)]),
      ),
    ],
    ['closes', closes()],
    ['exits', exits()],
    ['scopes', scopes()],
    ['capabilities', capabilities()],
    ['routes', routes()],
  ]);
}

function errors(): string {
  const rows = Object.entries(ERRORS).map(([name, row]) => [
    code(name),
    String(row.status),
    String(CLOSES[row.close].code),
    String(row.exit),
    row.retryable ? 'yes' : '',
    row.hint,
  ]);
  return table(['code', 'HTTP', 'WebSocket', 'exit', 'try again', 'hint'], rows);
}

function closes(): string {
  const rows = Object.values(CLOSES).map(({ code: number, reason, retry }) => [
    String(number),
    reason === '' ? '' : code(reason),
    retry,
  ]);
  return table(['code', 'reason', 'the client'], rows);
}

function exits(): string {
  const rows = Object.entries(EXIT_MEANINGS).map(([name, meaning]) => [
    String(Object.entries(EXIT).find(([one]) => one === name)?.[1]),
    meaning,
  ]);
  return table(['exit', 'meaning'], rows);
}

function scopes(): string {
  const granted: Readonly<Record<string, readonly string[]>> = SCOPE_CAPABILITIES;
  const rows = Object.entries(SCOPES).map(([scope, grants]) => [
    code(scope),
    grants,
    (granted[scope] ?? []).map(code).join(' '),
  ]);
  return table(['scope', 'lets its holder', 'at most these capabilities'], rows);
}

function capabilities(): string {
  const rows = Object.entries(CAPABILITIES).map(([name, { grants, implies, s2 }]) => [
    code(name),
    s2.map(code).join(' '),
    grants,
    implies.map(code).join(' '),
    Object.entries(DEFAULT_CAPABILITIES)
      .filter(([, granted]) => granted.some((one) => one === name))
      .map(([actor]) => actor)
      .join(', '),
  ]);
  return table(['capability', 'in S2', 'lets its holder', 'includes', 'given to'], rows);
}

function routes(): string {
  const all: readonly Route[] = Object.values(ROUTES);
  return Object.entries(FAMILIES)
    .flatMap(([family, heading]) => {
      const rows = all
        .filter((route) => route.family === family)
        .map((route) => [code(`${route.method} ${route.path}`), needs(route), route.summary]);
      return rows.length === 0
        ? []
        : [`### ${heading}\n\n${table(['route', 'needs', 'what it does'], rows)}`];
    })
    .join('\n\n');
}

function needs(route: Route): string {
  const words = [
    ...(route.scopes ?? []),
    ...(route.capability === undefined ? [] : [route.capability]),
    ...(route.capabilities ?? []),
  ];
  return words.length === 0 ? route.auth : words.map(code).join(' or ');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function code(text: string): string {
  return `\`${text}\``;
}
