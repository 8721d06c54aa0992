/** `ailsd version`: which release, which protocol, on what. */
import { PROTOCOL_VERSION, VERSION } from '../../protocol/version.js';
import { Command } from '../command.js';
import type { Context } from '../context.js';

export function versionCommand(context: Context): Command {
  return new Command('version')
    .description('print which version this is')
    .example('ailsd version', 'version, protocol, Node and platform')
    .example('ailsd version --json', 'the same for a script')
    .action(() => runVersion(context));
}

function runVersion({ output }: Context): void {
  const document = {
    version: VERSION,
    protocol: PROTOCOL_VERSION,
    node: process.version.slice(1),
    platform: `${process.platform}-${process.arch}`,
  };
  output.result(
    document,
    () =>
      `ailsd ${document.version} (protocol ${document.protocol}, node ${document.node}, ${document.platform})`,
  );
}
