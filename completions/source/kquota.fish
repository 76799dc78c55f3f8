# Completions of kquota for fish.

function __kquota_answer
    set -l program @PROGRAM@
    set -l table @TABLE@
    set -l current (commandline -ct | string replace --all --regex '["\'\\\\]' '')
    LC_ALL=C command awk $program $table read (commandline -opc) "$current" 2>/dev/null
end

# Whether there are words to offer; else fish completes files by itself.
function __kquota_words
    set -l answer (__kquota_answer)
    set -l head (string split -- \t $answer[1])
    set -g __kquota_offered
    switch $head[1]
        case files
            return 1
        case folders
            set -l begun (string sub --start (math (string length -- "$head[2]") + 1) -- (commandline -ct))
            set __kquota_offered $head[2](__fish_complete_directories "$begun")
        case '*'
            set __kquota_offered $head[2]$answer[2..]
    end
end

complete -c kquota -f -n __kquota_words -a '$__kquota_offered'
