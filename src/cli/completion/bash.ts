/** The completion script for bash: needs nothing but bash itself. */
import { type CompletionNode, flagsWithValue, optionsWithChoices } from './tree.js';
import { type LineWords, walkLoop } from './walk.js';

const WORDS: LineWords = { first: 1, last: 'COMP_CWORD', word: `\${COMP_WORDS[i]}` };

export function bashScript(nodes: readonly CompletionNode[]): string {
  return `# bash completion for ailsd, made by \`ailsd completion bash\`
_ailsd() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at=/ place=0 i word
  COMPREPLY=()
  # bash takes --output=json for three words.
  [[ $cur == = ]] && cur=
  [[ $prev == = ]] && prev=\${COMP_WORDS[COMP_CWORD-2]}
${walkLoop(nodes, WORDS)}
  case $prev in
${choiceCases(nodes)}
    ${flagsWithValue(nodes).join('|')}) return ;;
  esac
  if [[ $cur == -* ]]; then
    case $at in
${nodes.map((node) => `      ${node.path}) COMPREPLY=($(compgen -W '${flags(node)}' -- "$cur")) ;;`).join('\n')}
    esac
    return
  fi
  case $at:$place in
${nodes.flatMap(wordCases).join('\n')}
  esac
}
complete -F _ailsd ailsd
`;
}

function flags(node: CompletionNode): string {
  return node.options.flatMap((option) => option.flags).join(' ');
}

function choiceCases(nodes: readonly CompletionNode[]): string {
  return optionsWithChoices(nodes)
    .map(({ flags, choices }) => `    ${flags.join('|')}) ${reply(choices)}; return ;;`)
    .join('\n');
}

function wordCases(node: CompletionNode): string[] {
  const names = node.commands.map((command) => command.name);
  const places = names.length > 0 ? [names] : node.arguments;
  return places.flatMap((words, place) =>
    words.length === 0 ? [] : [`    ${node.path}:${place}) ${reply(words)} ;;`],
  );
}

function reply(words: readonly string[]): string {
  return `COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$cur"))`;
}
