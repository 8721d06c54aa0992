/** How bash and zsh find the command that a line names: the loop is the same, the words are kept under other names. */
import { type CompletionNode, commandPaths, flagsWithValue } from './tree.js';

export interface LineWords {
  /** Where the first word after the program stands. */
  readonly first: number;
  /** What stands for the place of the word that is being completed. */
  readonly last: string;
  /** The word at `$i`. */
  readonly word: string;
}

/** Leaves the command's path in `at` and how many words came after it in `place`; both, `i` and `word` are the caller's to declare. */
export function walkLoop(
  nodes: readonly CompletionNode[],
  { first, last, word }: LineWords,
): string {
  return `  for ((i = ${first}; i < ${last}; i++)); do
    word=${word}
    case $word in
      --) return ;;
      ${flagsWithValue(nodes).join('|')}) ((i++)); continue ;;
      -*) continue ;;
    esac
    case \${at%/}/$word in
      ${commandPaths(nodes).join('|')}) at=\${at%/}/$word place=0 ;;
      *) ((place++)) ;;
    esac
  done`;
}
