/** The completion script for fish. */
import {
  type CompletionNode,
  type CompletionOption,
  commandPaths,
  flagsWithValue,
} from './tree.js';

export function fishScript(nodes: readonly CompletionNode[]): string {
  return `# fish completion for ailsd, made by \`ailsd completion fish\`
function __ailsd_at --description 'whether the line so far names this command, and this many words after it'
    set -l at /
    set -l place 0
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case --
                return 1
            case ${flagsWithValue(nodes).join(' ')}
                set skip 1
            case '-*'
            case '*'
                set -l next (string trim --right --chars=/ $at)/$word
                if contains -- $next ${commandPaths(nodes).join(' ')}
                    set at $next
                    set place 0
                else
                    set place (math $place + 1)
                end
        end
    end
    test $at = $argv[1]; or return 1
    test (count $argv) -lt 2; and return 0
    test $skip = 0; and test $place = $argv[2]
end
complete -c ailsd -f
${nodes.flatMap(lines).join('\n')}
`;
}

function lines(node: CompletionNode): string[] {
  return [
    ...node.commands.map(
      ({ name, summary }) =>
        `complete -c ailsd -n '__ailsd_at ${node.path} 0' -a ${name} -d ${quoted(summary)}`,
    ),
    ...node.arguments.flatMap((choices, place) =>
      choices.length === 0
        ? []
        : [
            `complete -c ailsd -n '__ailsd_at ${node.path} ${place}' -a ${quoted(choices.join(' '))}`,
          ],
    ),
    ...node.options.map((option) => optionLine(node.path, option)),
  ];
}

function optionLine(path: string, option: CompletionOption): string {
  const flags = option.flags.map((flag) =>
    flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
  );
  const value = option.takesValue ? ' -x' : '';
  const choices = option.choices.length > 0 ? ` -a ${quoted(option.choices.join(' '))}` : '';
  return `complete -c ailsd -n '__ailsd_at ${path}' ${flags.join(' ')}${value}${choices} -d ${quoted(option.summary)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
