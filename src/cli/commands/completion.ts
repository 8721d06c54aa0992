/** `ailsd completion`: the completion script of a shell, made from the command tree. */
import { Argument } from 'commander';
import { Command } from '../command.js';
import { completionScript, SHELLS, type ShellName } from '../completion/scripts.js';
import type { Context } from '../context.js';
import { createProgram } from '../program.js';

export function completionCommand(context: Context): Command {
  return new Command('completion')
    .description('print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .example('source <(ailsd completion bash)', 'bash: add this line to ~/.bashrc')
    .example('source <(ailsd completion zsh)', 'zsh: add this line to ~/.zshrc, after compinit')
    .example(
      'mkdir -p ~/.config/fish/completions && ailsd completion fish > ~/.config/fish/completions/ailsd.fish',
      'fish: once',
    )
    .action((shell: ShellName) => runCompletion(context, shell));
}

async function runCompletion(context: Context, shell: ShellName): Promise<void> {
  const script = completionScript(shell, await createProgram(context, 'all'));
  context.output.result({ shell, script }, () => script);
}
