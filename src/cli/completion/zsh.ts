/** The completion script for zsh: a file named _ailsd on the fpath, or sourced. */
import {
  type CompletionNode,
  type CompletionOption,
  flagsWithValue,
  optionsWithChoices,
  type Word,
} from './tree.js';
import { type LineWords, walkLoop } from './walk.js';

const WORDS: LineWords = { first: 2, last: 'CURRENT', word: `\${words[i]}` };

export function zshScript(nodes: readonly CompletionNode[]): string {
  return `#compdef ailsd
# zsh completion for ailsd, made by \`ailsd completion zsh\`
_ailsd() {
  local at=/ place=0 i word
  local -a found
${walkLoop(nodes, WORDS)}
  case \${words[CURRENT-1]} in
${choiceCases(nodes)}
    ${flagsWithValue(nodes).join('|')}) return ;;
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    case $at in
${nodes.map((node) => `      ${node.path}) found=(${described(flagWords(node.options))}) ;;`).join('\n')}
    esac
    _describe -o option found
    return
  fi
  case $at:$place in
${nodes.flatMap(wordCases).join('\n')}
    *) return ;;
  esac
  _describe command found
}
if [[ $funcstack[1] == _ailsd ]]; then _ailsd "$@"; else compdef _ailsd ailsd; fi
`;
}

function flagWords(options: readonly CompletionOption[]): Word[] {
  return options.flatMap(({ flags, summary }) => flags.map((name) => ({ name, summary })));
}

function choiceCases(nodes: readonly CompletionNode[]): string {
  return optionsWithChoices(nodes)
    .map(
      ({ flags, choices }) => `    ${flags.join('|')}) compadd -- ${choices.join(' ')}; return ;;`,
    )
    .join('\n');
}

function wordCases(node: CompletionNode): string[] {
  if (node.commands.length > 0)
    return [`    ${node.path}:0) found=(${described(node.commands)}) ;;`];
  return node.arguments.flatMap((choices, place) =>
    choices.length === 0
      ? []
      : [`    ${node.path}:${place}) compadd -- ${choices.join(' ')}; return ;;`],
  );
}

/** 'name:summary' words, with the colons and quotes of the summary kept. */
function described(words: readonly Word[]): string {
  return words
    .map(
      ({ name, summary }) => `'${name}:${summary.replaceAll(':', '\\:').replaceAll("'", "'\\''")}'`,
    )
    .join(' ');
}
