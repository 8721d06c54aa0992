# fish completion for ailsd, made by `ailsd completion fish`
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
            case --output --profile --url -o
                set skip 1
            case '-*'
            case '*'
                set -l next (string trim --right --chars=/ $at)/$word
                if contains -- $next /config /config/get /config/set /config/unset /config/list /config/path /doctor /completion /version /help
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
complete -c ailsd -n '__ailsd_at / 0' -a config -d 'read and change settings'
complete -c ailsd -n '__ailsd_at / 0' -a doctor -d 'check that this machine has what ailsd needs'
complete -c ailsd -n '__ailsd_at / 0' -a completion -d 'print the completion script of a shell'
complete -c ailsd -n '__ailsd_at / 0' -a version -d 'print which version this is'
complete -c ailsd -n '__ailsd_at / 0' -a help -d 'print help on a command or a topic'
complete -c ailsd -n '__ailsd_at /' -s V -l version -d 'print the version'
complete -c ailsd -n '__ailsd_at /' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /config 0' -a get -d 'print the value of a setting that is in force'
complete -c ailsd -n '__ailsd_at /config 0' -a set -d 'keep a setting in the profile'
complete -c ailsd -n '__ailsd_at /config 0' -a unset -d 'remove a setting from the profile'
complete -c ailsd -n '__ailsd_at /config 0' -a list -d 'print all settings in force, and where each comes from'
complete -c ailsd -n '__ailsd_at /config 0' -a path -d 'print where settings are kept'
complete -c ailsd -n '__ailsd_at /config' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /config' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /config' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /config' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /config' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /config' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /config' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /config' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /config/get 0' -a 'url thread output credential_store profile'
complete -c ailsd -n '__ailsd_at /config/get' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /config/get' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /config/get' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /config/get' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /config/get' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /config/get' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /config/get' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /config/get' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /config/set 0' -a 'url thread output credential_store profile'
complete -c ailsd -n '__ailsd_at /config/set' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /config/set' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /config/set' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /config/set' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /config/set' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /config/set' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /config/set' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /config/set' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /config/unset 0' -a 'url thread output credential_store profile'
complete -c ailsd -n '__ailsd_at /config/unset' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /config/unset' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /config/unset' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /config/unset' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /config/unset' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /config/unset' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /config/unset' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /config/unset' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /config/list' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /config/list' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /config/list' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /config/list' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /config/list' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /config/list' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /config/list' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /config/list' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /config/path' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /config/path' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /config/path' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /config/path' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /config/path' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /config/path' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /config/path' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /config/path' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /doctor' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /doctor' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /doctor' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /doctor' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /doctor' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /doctor' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /doctor' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /doctor' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /completion 0' -a 'bash zsh fish'
complete -c ailsd -n '__ailsd_at /completion' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /completion' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /completion' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /completion' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /completion' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /completion' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /completion' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /completion' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /version' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /version' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /version' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /version' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /version' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /version' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /version' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /version' -s h -l help -d 'print this help'
complete -c ailsd -n '__ailsd_at /help' -l json -d 'print JSON: the same as -o json'
complete -c ailsd -n '__ailsd_at /help' -s o -l output -r -a 'text json jsonl' -d 'how to print results'
complete -c ailsd -n '__ailsd_at /help' -l profile -r -d 'use the settings and login of this profile'
complete -c ailsd -n '__ailsd_at /help' -l url -r -d 'talk to this server'
complete -c ailsd -n '__ailsd_at /help' -l debug -d 'tell on stderr what happens, with causes of errors'
complete -c ailsd -n '__ailsd_at /help' -l no-input -d 'never ask anything'
complete -c ailsd -n '__ailsd_at /help' -s q -l quiet -d 'no notices on stderr, only errors'
complete -c ailsd -n '__ailsd_at /help' -s h -l help -d 'print this help'
