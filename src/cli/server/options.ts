/** Options and checks that several `ailsd server` commands share. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { AilsdError } from '../../protocol/errors.js';
import { isScope, SCOPES } from '../../protocol/scopes.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { escapeText } from '../escape.js';
import { nearest } from '../nearest.js';
import { type Document, isDocument } from './document.js';

export interface FolderOptions {
  readonly dir?: string;
}

export function folderOption(command: Command): Command {
  return command.option('--dir <folder>', "the server's data folder");
}

export function scopeOption(command: Command, summary: string): Command {
  return command
    .option('--scope <scope>', `${summary}; may be repeated`, collectScopes)
    .note('Scopes:', Object.entries(SCOPES));
}

/** The data folder, from the current one if it is relative. */
export function folderOf({ environment }: Context, { dir }: FolderOptions): string {
  // Without a current folder only an absolute path says where.
  if (dir !== undefined) return resolve(environment.workingFolder ?? '/', dir);
  throw new AilsdError('USAGE', '--dir is missing', {
    hint: "name the server's data folder with --dir FOLDER or AILSD_DIR",
  });
}

/** The data folder of a server that is there: for a command that asks somebody something first. */
export function serverFolderOf(context: Context, options: FolderOptions): string {
  const folder = folderOf(context, options);
  if (existsSync(join(folder, 'server.json'))) return folder;
  throw new AilsdError('NOT_FOUND', `${folder} holds no server`, {
    details: { field: 'dir' },
    hint: 'make one with `ailsd server init --dir DIR`',
  });
}

/** Runs an operation on the data folder. */
export async function operate(
  context: Context,
  operation: string,
  options: FolderOptions,
  input: object = {},
): Promise<Document> {
  const dir = folderOf(context, options);
  const { runOperation } = await import('./program.js');
  return runOperation(operation, { dir, ...defined(input) }, context.signal);
}

/** The `--url` of this command line; one in the settings is a server to talk to, not one to be. */
export function urlOption({ settings }: Context): string | undefined {
  const found = settings.fromOptionOrVariable('url');
  return found?.origin.kind === 'option' ? found.value : undefined;
}

export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

export function collectScopes(value: string, before: readonly string[] = []): readonly string[] {
  const words = value.split(/[\s,]+/).filter((word) => word !== '');
  for (const word of words) {
    if (isScope(word)) continue;
    const near = nearest(word, Object.keys(SCOPES));
    throw new InvalidArgumentError(
      near === undefined
        ? `Scopes are ${Object.keys(SCOPES).join(', ')}.`
        : `Did you mean ${near}?`,
    );
  }
  return [...before, ...words];
}

/** What an answer holds under a name, as text that is safe to print; absent things as nothing. */
export function shown(document: Document, key: string): string {
  const value = document[key];
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return escapeText(value.join(' '));
  return escapeText(isDocument(value) ? JSON.stringify(value) : String(value));
}

export function itemsOf(document: Document): readonly Document[] {
  const { items } = document;
  return Array.isArray(items) ? items.filter(isDocument) : [];
}

function defined(input: object): object {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
}
