# bash completion for ailsd, made by `ailsd completion bash`
_ailsd() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=/ place=0 i word
  COMPREPLY=()
  # bash takes --output=json for three words.
  [[ $cur == = ]] && cur=
  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      --) return ;;
      --audience|--claim|--dir|--grant|--id|--issuer|--jwks|--listen|--output|--profile|--redirect-uri|--scope|--store|--subject|--tenant|--upstream|--upstream-subject|--url|-o) ((i++)); continue ;;
      -*) continue ;;
    esac
    case ${at%/}/$word in
      /login|/logout|/whoami|/token|/server|/server/init|/server/start|/server/user|/server/user/add|/server/user/passwd|/server/user/logout|/server/user/disable|/server/user/enable|/server/user/list|/server/client|/server/client/add|/server/client/list|/server/client/disable|/server/client/enable|/server/client/rotate-secret|/server/keys|/server/keys/rotate|/server/keys/list|/server/trust|/server/trust/add|/server/trust/list|/server/trust/rm|/server/migrate|/config|/config/get|/config/set|/config/unset|/config/list|/config/profiles|/config/path|/doctor|/completion|/version|/help) at=${at%/}/$word place=0 ;;
      *) ((place++)) ;;
    esac
  done
  case $prev in
    -o|--output) COMPREPLY=($(compgen -W 'text json jsonl' -- "$cur")); return ;;
    --grant) COMPREPLY=($(compgen -W 'device code refresh client-credentials token-exchange' -- "$cur")); return ;;
    --audience|--claim|--dir|--grant|--id|--issuer|--jwks|--listen|--output|--profile|--redirect-uri|--scope|--store|--subject|--tenant|--upstream|--upstream-subject|--url|-o) return ;;
  esac
  if [[ $cur == -* ]]; then
    case $at in
      /) COMPREPLY=($(compgen -W '-V --version --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /login) COMPREPLY=($(compgen -W '--device --web --with-token --client-credentials --oidc --scope --no-browser --qr --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /logout) COMPREPLY=($(compgen -W '--all --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /whoami) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /token) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/init) COMPREPLY=($(compgen -W '--dir --store --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/start) COMPREPLY=($(compgen -W '--dir --listen --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/add) COMPREPLY=($(compgen -W '--dir --tenant --scope --generate --upstream --upstream-subject --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/passwd) COMPREPLY=($(compgen -W '--dir --tenant --generate --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/logout) COMPREPLY=($(compgen -W '--dir --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/disable) COMPREPLY=($(compgen -W '--dir --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/enable) COMPREPLY=($(compgen -W '--dir --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/list) COMPREPLY=($(compgen -W '--dir --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/client) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/client/add) COMPREPLY=($(compgen -W '--dir --scope --id --public --grant --redirect-uri --jwks --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/client/list) COMPREPLY=($(compgen -W '--dir --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/client/disable) COMPREPLY=($(compgen -W '--dir --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/client/enable) COMPREPLY=($(compgen -W '--dir --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/client/rotate-secret) COMPREPLY=($(compgen -W '--dir --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/keys) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/keys/rotate) COMPREPLY=($(compgen -W '--dir --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/keys/list) COMPREPLY=($(compgen -W '--dir --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/trust) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/trust/add) COMPREPLY=($(compgen -W '--dir --issuer --audience --claim --subject --tenant --scope --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/trust/list) COMPREPLY=($(compgen -W '--dir --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/trust/rm) COMPREPLY=($(compgen -W '--dir --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/migrate) COMPREPLY=($(compgen -W '--dir --check --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/get) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/set) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/unset) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/list) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/profiles) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/path) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /doctor) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /completion) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /version) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /help) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
    esac
    return
  fi
  case $at:$place in
    /:0) COMPREPLY=($(compgen -W 'login logout whoami token server config doctor completion version help' -- "$cur")) ;;
    /server:0) COMPREPLY=($(compgen -W 'init start user client keys trust migrate' -- "$cur")) ;;
    /server/user:0) COMPREPLY=($(compgen -W 'add passwd logout disable enable list' -- "$cur")) ;;
    /server/client:0) COMPREPLY=($(compgen -W 'add list disable enable rotate-secret' -- "$cur")) ;;
    /server/keys:0) COMPREPLY=($(compgen -W 'rotate list' -- "$cur")) ;;
    /server/trust:0) COMPREPLY=($(compgen -W 'add list rm' -- "$cur")) ;;
    /config:0) COMPREPLY=($(compgen -W 'get set unset list profiles path' -- "$cur")) ;;
    /config/get:0) COMPREPLY=($(compgen -W 'url thread output credential_store ca_file profile' -- "$cur")) ;;
    /config/set:0) COMPREPLY=($(compgen -W 'url thread output credential_store ca_file profile' -- "$cur")) ;;
    /config/unset:0) COMPREPLY=($(compgen -W 'url thread output credential_store ca_file profile' -- "$cur")) ;;
    /completion:0) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
    /help:0) COMPREPLY=($(compgen -W 'login logout whoami token server config doctor completion version help exit-codes environment json' -- "$cur")) ;;
  esac
}
complete -F _ailsd ailsd
