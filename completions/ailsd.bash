# bash completion for ailsd, made by `ailsd completion bash`
_ailsd() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=/ place=0 i word
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      --) return ;;
      --output|--profile|--url|-o) ((i++)); continue ;;
      -*) continue ;;
    esac
    case ${at%/}/$word in
      /config|/config/get|/config/set|/config/unset|/config/list|/config/path|/doctor|/completion|/version|/help) at=${at%/}/$word place=0 ;;
      *) ((place++)) ;;
    esac
  done
  case $prev in
    -o|--output) COMPREPLY=($(compgen -W 'text json jsonl' -- "$cur")); return ;;
    --output|--profile|--url|-o) COMPREPLY=($(compgen -f -- "$cur")); return ;;
  esac
  if [[ $cur == -* ]]; then
    case $at in
      /) COMPREPLY=($(compgen -W '-V --version --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/get) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/set) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/unset) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/list) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/path) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /doctor) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /completion) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /version) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /help) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
    esac
    return
  fi
  case $at:$place in
    /:0) COMPREPLY=($(compgen -W 'config doctor completion version help' -- "$cur")) ;;
    /config:0) COMPREPLY=($(compgen -W 'get set unset list path' -- "$cur")) ;;
    /config/get:0) COMPREPLY=($(compgen -W 'url thread output credential_store profile' -- "$cur")) ;;
    /config/set:0) COMPREPLY=($(compgen -W 'url thread output credential_store profile' -- "$cur")) ;;
    /config/unset:0) COMPREPLY=($(compgen -W 'url thread output credential_store profile' -- "$cur")) ;;
    /completion:0) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
  esac
}
complete -o default -F _ailsd ailsd
