/** `ailsd files`: the files of a sandbox one by one: list, print, write, delete and look at them. */
import { Command } from '../command.js';
import type { Context } from '../context.js';
import { sandboxOption } from '../sessions/given-access.js';
import { type PageOptions, pageOptions } from '../sessions/options.js';

interface PlaceOptions {
  readonly sandbox?: string;
}

export interface ListOptions extends PlaceOptions, PageOptions {}

export interface PutOptions extends PlaceOptions {
  readonly ifMatch?: string;
  readonly isNew?: boolean;
}

export interface RemoveOptions extends PlaceOptions {
  readonly ifMatch?: string;
  readonly recursive?: boolean;
}

const PLACE = 'THREAD:PATH, or a path in the thread that is set';

export function filesCommand(context: Context): Command {
  const command = new Command('files')
    .description('the files of a sandbox: list, print, write, delete and look at them')
    .example('ailsd files ls thr_demo:src', 'what is in a folder')
    .example('ailsd files cat thr_demo:src/main.ts', 'a file, as it is');
  for (const part of [listCommand, catCommand, putCommand, removeCommand, statCommand])
    command.addCommand(part(context));
  return command;
}

function listCommand(context: Context): Command {
  return pageOptions(sandboxOption(new Command('ls')))
    .description('list a folder')
    .argument('[place]', `${PLACE}; by default the workspace`)
    .example('ailsd files ls thr_demo: --all', 'all that is in the workspace')
    .action(async (place: string | undefined, options: ListOptions) => {
      const { runFilesList } = await import('../files/run-files.js');
      await runFilesList(context, place, options);
    });
}

function catCommand(context: Context): Command {
  return sandboxOption(new Command('cat'))
    .description('print a file, byte for byte')
    .argument('<place>', PLACE)
    .example('ailsd files cat thr_demo:log.txt | tail', 'its last lines')
    .action(async (place: string, options: PlaceOptions) => {
      const { runFilesCat } = await import('../files/run-files.js');
      await runFilesCat(context, place, options);
    });
}

function putCommand(context: Context): Command {
  return sandboxOption(new Command('put'))
    .description('write a file whole, and print its ETag')
    .argument('<file>', 'what to write: a file here, or - for standard input')
    .argument('<place>', PLACE)
    .option('--if-match <etag>', 'only if what is there is still this')
    .option('--new', 'only if nothing is there')
    .example('ailsd files put - thr_demo:note.txt < note.txt', 'from a pipe')
    .action(
      async (file: string, place: string, options: PutOptions & { readonly new?: boolean }) => {
        const { new: isNew = false, ...rest } = options;
        const { runFilesPut } = await import('../files/run-files.js');
        await runFilesPut(context, file, place, { ...rest, isNew });
      },
    );
}

function removeCommand(context: Context): Command {
  return sandboxOption(new Command('rm'))
    .description('delete a file, or with -r a folder')
    .argument('<place>', PLACE)
    .option('-r, --recursive', 'delete a folder with all that is in it')
    .option('--if-match <etag>', 'only if it is still this one')
    .example('ailsd files rm thr_demo:old.txt', 'gone')
    .action(async (place: string, options: RemoveOptions) => {
      const { runFilesRemove } = await import('../files/run-files.js');
      await runFilesRemove(context, place, options);
    });
}

function statCommand(context: Context): Command {
  return sandboxOption(new Command('stat'))
    .description('look at a file: its size, mode, time and ETag')
    .argument('<place>', PLACE)
    .example('ailsd files stat thr_demo:main.ts --json', 'for a script that writes it back')
    .action(async (place: string, options: PlaceOptions) => {
      const { runFilesStat } = await import('../files/run-files.js');
      await runFilesStat(context, place, options);
    });
}
