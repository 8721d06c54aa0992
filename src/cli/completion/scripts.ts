/** The shells we complete in, and what makes each one's script. */
import type { Command } from 'commander';
import { bashScript } from './bash.js';
import { fishScript } from './fish.js';
import { completionTree } from './tree.js';
import { zshScript } from './zsh.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type ShellName = (typeof SHELLS)[number];

/** What each shell expects the file to be called. */
export const SCRIPT_FILES: Readonly<Record<ShellName, string>> = {
  bash: 'ailsd.bash',
  zsh: '_ailsd',
  fish: 'ailsd.fish',
};

export function completionScript(shell: ShellName, root: Command): string {
  const nodes = completionTree(root);
  if (shell === 'bash') return bashScript(nodes);
  return shell === 'zsh' ? zshScript(nodes) : fishScript(nodes);
}
