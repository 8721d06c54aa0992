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
      --agent-hourly|--audience|--audit-retention-days|--cap|--ceiling|--claim|--cmd|--cursor|--data|--dir|--endpoint|--env|--environment|--escape-char|--event|--export|--for|--format|--from|--grant|--header|--hint|--history|--id|--if-match|--issuer|--jwks|--language|--limit|--listen|--login|--output|--owner|--profile|--provider|--record|--redirect-uri|--room|--sandbox|--scope|--session-id|--shell|--sidecar-audience|--sidecar-image|--sidecar-scope|--since|--start-timeout|--state|--status-file|--store|--sub|--subject|--tail|--template|--tenant|--tenant-daily|--thread|--thread-id|--timeout|--token-mode|--ttl|--turn|--until|--upstream|--upstream-subject|--url|--workdir|-d|-e|-o|-w) ((i++)); continue ;;
      -*) continue ;;
    esac
    case ${at%/}/$word in
      /attach|/exec|/run|/job|/job/list|/job/wait|/job/logs|/job/kill|/code|/cp|/files|/files/ls|/files/cat|/files/put|/files/rm|/files/stat|/dev|/login|/logout|/whoami|/token|/session|/session/get|/session/ensure|/session/list|/session/info|/session/heartbeat|/session/release|/sandbox|/sandbox/list|/sandbox/info|/sandbox/why|/sandbox/start|/sandbox/stop|/sandbox/rm|/sandbox/rename|/sandbox/logs|/shell|/shell/list|/shell/kill|/shell/log|/share|/share/add|/share/list|/share/rm|/share/invite|/server|/server/init|/server/start|/server/user|/server/user/add|/server/user/passwd|/server/user/logout|/server/user/disable|/server/user/enable|/server/user/scopes|/server/user/rm|/server/user/list|/server/client|/server/client/add|/server/client/list|/server/client/disable|/server/client/enable|/server/client/rotate-secret|/server/keys|/server/keys/rotate|/server/keys/list|/server/trust|/server/trust/add|/server/trust/list|/server/trust/rm|/server/migrate|/admin|/admin/sandboxes|/admin/sandboxes/list|/admin/sandboxes/kill|/admin/tenant|/admin/tenant/get|/admin/tenant/set|/admin/quota|/admin/quota/list|/admin/quota/set|/admin/client|/admin/client/list|/admin/client/get|/admin/client/set|/admin/client/rm|/admin/trust|/admin/trust/list|/admin/trust/add|/admin/trust/rm|/admin/audit|/config|/config/get|/config/set|/config/set/url|/config/set/thread|/config/set/output|/config/set/credential_store|/config/set/ca_file|/config/unset|/config/list|/config/profiles|/config/path|/doctor|/api|/completion|/version|/help) at=${at%/}/$word place=0 ;;
      *) ((place++)) ;;
    esac
  done
  case $prev in
    -o|--output) COMPREPLY=($(compgen -W 'text json jsonl' -- "$cur")); return ;;
    --language) COMPREPLY=($(compgen -W 'python javascript bash' -- "$cur")); return ;;
    --state) COMPREPLY=($(compgen -W 'provisioning active idle suspended terminated failed' -- "$cur")); return ;;
    --format) COMPREPLY=($(compgen -W 'text asciicast' -- "$cur")); return ;;
    --endpoint) COMPREPLY=($(compgen -W 'computer execute' -- "$cur")); return ;;
    --grant) COMPREPLY=($(compgen -W 'device code refresh client-credentials token-exchange' -- "$cur")); return ;;
    --environment) COMPREPLY=($(compgen -W 'default-public internal-only' -- "$cur")); return ;;
    --token-mode) COMPREPLY=($(compgen -W 'jwt opaque' -- "$cur")); return ;;
    --export) COMPREPLY=($(compgen -W 'jsonl' -- "$cur")); return ;;
    --agent-hourly|--audience|--audit-retention-days|--cap|--ceiling|--claim|--cmd|--cursor|--data|--dir|--endpoint|--env|--environment|--escape-char|--event|--export|--for|--format|--from|--grant|--header|--hint|--history|--id|--if-match|--issuer|--jwks|--language|--limit|--listen|--login|--output|--owner|--profile|--provider|--record|--redirect-uri|--room|--sandbox|--scope|--session-id|--shell|--sidecar-audience|--sidecar-image|--sidecar-scope|--since|--start-timeout|--state|--status-file|--store|--sub|--subject|--tail|--template|--tenant|--tenant-daily|--thread|--thread-id|--timeout|--token-mode|--ttl|--turn|--until|--upstream|--upstream-subject|--url|--workdir|-d|-e|-o|-w) return ;;
  esac
  if [[ $cur == -* ]]; then
    case $at in
      /) COMPREPLY=($(compgen -W '-V --version --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /attach) COMPREPLY=($(compgen -W '--shell --observe --cmd -w --workdir -e --env --history --escape-char --no-reconnect --record --sandbox --timeout --no-wait --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /exec) COMPREPLY=($(compgen -W '-w --workdir -e --env --timeout --start-timeout -n --no-stdin --no-reconnect --status-file -t --tty -d --detach --sandbox --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /run) COMPREPLY=($(compgen -W '--thread --template --keep -w --workdir -e --env --timeout --start-timeout -n --no-stdin --no-reconnect --status-file --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /job) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /job/list) COMPREPLY=($(compgen -W '--sandbox --limit --cursor --all --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /job/wait) COMPREPLY=($(compgen -W '--sandbox --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /job/logs) COMPREPLY=($(compgen -W '--sandbox -f --follow --tail --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /job/kill) COMPREPLY=($(compgen -W '--sandbox --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /code) COMPREPLY=($(compgen -W '--language --turn --timeout --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /cp) COMPREPLY=($(compgen -W '--sandbox -r --recursive --if-match --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /files) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /files/ls) COMPREPLY=($(compgen -W '--sandbox --limit --cursor --all --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /files/cat) COMPREPLY=($(compgen -W '--sandbox --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /files/put) COMPREPLY=($(compgen -W '--sandbox --if-match --new --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /files/rm) COMPREPLY=($(compgen -W '--sandbox -r --recursive --if-match --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /files/stat) COMPREPLY=($(compgen -W '--sandbox --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /dev) COMPREPLY=($(compgen -W '--thread --keep --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /login) COMPREPLY=($(compgen -W '--device --web --with-token --client-credentials --oidc --scope --no-browser --qr --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /logout) COMPREPLY=($(compgen -W '--all --login --everywhere --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /whoami) COMPREPLY=($(compgen -W '--logins --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /token) COMPREPLY=($(compgen -W '--thread --cap --ttl --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /session) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /session/get) COMPREPLY=($(compgen -W '--ttl --agent --cap --sandbox --timeout --no-wait --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /session/ensure) COMPREPLY=($(compgen -W '--ttl --agent --cap --sandbox --timeout --no-wait --create-only --template --provider --hint --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /session/list) COMPREPLY=($(compgen -W '--limit --cursor --all --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /session/info) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /session/heartbeat) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /session/release) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox/list) COMPREPLY=($(compgen -W '--limit --cursor --all --state --thread-id --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox/info) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox/why) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox/start) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox/stop) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox/rm) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox/rename) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /sandbox/logs) COMPREPLY=($(compgen -W '-f --follow --tail --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /shell) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /shell/list) COMPREPLY=($(compgen -W '--sandbox --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /shell/kill) COMPREPLY=($(compgen -W '--sandbox --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /shell/log) COMPREPLY=($(compgen -W '--sandbox --format --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /share) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /share/add) COMPREPLY=($(compgen -W '--agent --for --cap --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /share/list) COMPREPLY=($(compgen -W '--limit --cursor --all --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /share/rm) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /share/invite) COMPREPLY=($(compgen -W '--endpoint --room --elevated --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/init) COMPREPLY=($(compgen -W '--dir --store --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/start) COMPREPLY=($(compgen -W '--dir --listen --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/add) COMPREPLY=($(compgen -W '--dir --tenant --scope --generate --upstream --upstream-subject --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/passwd) COMPREPLY=($(compgen -W '--dir --tenant --generate --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/logout) COMPREPLY=($(compgen -W '--dir --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/disable) COMPREPLY=($(compgen -W '--dir --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/enable) COMPREPLY=($(compgen -W '--dir --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/scopes) COMPREPLY=($(compgen -W '--dir --tenant --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /server/user/rm) COMPREPLY=($(compgen -W '--dir --tenant --yes --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
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
      /admin) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/sandboxes) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/sandboxes/list) COMPREPLY=($(compgen -W '--limit --cursor --all --tenant --owner --state --thread-id --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/sandboxes/kill) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/tenant) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/tenant/get) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/tenant/set) COMPREPLY=($(compgen -W '--enable --disable --environment --token-mode --audit-retention-days --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/quota) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/quota/list) COMPREPLY=($(compgen -W '--limit --cursor --all --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/quota/set) COMPREPLY=($(compgen -W '--tenant --tenant-daily --agent-hourly --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/client) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/client/list) COMPREPLY=($(compgen -W '--limit --cursor --all --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/client/get) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/client/set) COMPREPLY=($(compgen -W '--ceiling --no-ceiling --env --sidecar-image --sidecar-audience --sidecar-scope --no-sidecar --from --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/client/rm) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/trust) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/trust/list) COMPREPLY=($(compgen -W '--limit --cursor --all --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/trust/add) COMPREPLY=($(compgen -W '--issuer --audience --claim --subject --tenant --scope --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/trust/rm) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /admin/audit) COMPREPLY=($(compgen -W '--limit --cursor --all --since --until --tenant --sub --event --thread-id --session-id --export --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/get) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/set) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/set/url) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/set/thread) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/set/output) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/set/credential_store) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/set/ca_file) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/unset) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/list) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/profiles) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /config/path) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /doctor) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /api) COMPREPLY=($(compgen -W '-d --data --header --json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /completion) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /version) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
      /help) COMPREPLY=($(compgen -W '--json -o --output --profile --url --debug --no-input -q --quiet -h --help' -- "$cur")) ;;
    esac
    return
  fi
  case $at:$place in
    /:0) COMPREPLY=($(compgen -W 'attach exec run job code cp files dev login logout whoami token session sandbox shell share server admin config doctor api completion version help' -- "$cur")) ;;
    /job:0) COMPREPLY=($(compgen -W 'list wait logs kill' -- "$cur")) ;;
    /files:0) COMPREPLY=($(compgen -W 'ls cat put rm stat' -- "$cur")) ;;
    /session:0) COMPREPLY=($(compgen -W 'get ensure list info heartbeat release' -- "$cur")) ;;
    /sandbox:0) COMPREPLY=($(compgen -W 'list info why start stop rm rename logs' -- "$cur")) ;;
    /shell:0) COMPREPLY=($(compgen -W 'list kill log' -- "$cur")) ;;
    /share:0) COMPREPLY=($(compgen -W 'add list rm invite' -- "$cur")) ;;
    /server:0) COMPREPLY=($(compgen -W 'init start user client keys trust migrate' -- "$cur")) ;;
    /server/user:0) COMPREPLY=($(compgen -W 'add passwd logout disable enable scopes rm list' -- "$cur")) ;;
    /server/client:0) COMPREPLY=($(compgen -W 'add list disable enable rotate-secret' -- "$cur")) ;;
    /server/keys:0) COMPREPLY=($(compgen -W 'rotate list' -- "$cur")) ;;
    /server/trust:0) COMPREPLY=($(compgen -W 'add list rm' -- "$cur")) ;;
    /admin:0) COMPREPLY=($(compgen -W 'sandboxes tenant quota client trust audit' -- "$cur")) ;;
    /admin/sandboxes:0) COMPREPLY=($(compgen -W 'list kill' -- "$cur")) ;;
    /admin/tenant:0) COMPREPLY=($(compgen -W 'get set' -- "$cur")) ;;
    /admin/quota:0) COMPREPLY=($(compgen -W 'list set' -- "$cur")) ;;
    /admin/client:0) COMPREPLY=($(compgen -W 'list get set rm' -- "$cur")) ;;
    /admin/trust:0) COMPREPLY=($(compgen -W 'list add rm' -- "$cur")) ;;
    /config:0) COMPREPLY=($(compgen -W 'get set unset list profiles path' -- "$cur")) ;;
    /config/get:0) COMPREPLY=($(compgen -W 'url thread output credential_store ca_file profile' -- "$cur")) ;;
    /config/set:0) COMPREPLY=($(compgen -W 'url thread output credential_store ca_file profile' -- "$cur")) ;;
    /config/set/output:0) COMPREPLY=($(compgen -W 'text json jsonl' -- "$cur")) ;;
    /config/set/credential_store:0) COMPREPLY=($(compgen -W 'auto keyring file memory' -- "$cur")) ;;
    /config/unset:0) COMPREPLY=($(compgen -W 'url thread output credential_store ca_file profile' -- "$cur")) ;;
    /completion:0) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
    /help:0) COMPREPLY=($(compgen -W 'attach exec run job code cp files dev login logout whoami token session sandbox shell share server admin config doctor api completion version help exit-codes environment json' -- "$cur")) ;;
  esac
}
complete -F _ailsd ailsd
