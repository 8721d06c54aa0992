/** Lists that come in pages: one page, from a cursor on, or all of them. */
import type { Document, Page } from '../../client/sessions/call.js';
import type { Context } from '../context.js';
import { table } from '../table.js';
import type { PageOptions } from './options.js';

export interface PageQuery {
  readonly limit: number | undefined;
  readonly cursor: string | undefined;
}

export interface Column {
  readonly heading: string;
  readonly cell: (item: Document) => string;
}

/** More than this is no list for anybody to read. */
const MOST_PAGES = 5_000;
const FULL_PAGE = 200;

export async function printPages(
  context: Context,
  { limit, cursor, all = false }: PageOptions,
  columns: readonly Column[],
  fetch: (query: PageQuery) => Promise<Page>,
): Promise<void> {
  const items: Document[] = [];
  let next = cursor;
  for (let page = 0; page < (all ? MOST_PAGES : 1); page += 1) {
    const got = await fetch({ limit: limit ?? (all ? FULL_PAGE : undefined), cursor: next });
    items.push(...got.items);
    next = got.nextCursor;
    if (next === undefined) break;
  }
  const { output } = context;
  output.list(
    items,
    () => {
      if (items.length === 0) return '';
      const rows = items.map((item) => columns.map(({ cell }) => cell(item)));
      return table(
        context,
        columns.map(({ heading }) => heading),
        rows,
      );
    },
    next ?? null,
  );
  if (items.length === 0) output.notice('there are none');
  if (next !== undefined) output.notice(`there are more: add --all, or --cursor ${next}`);
}
