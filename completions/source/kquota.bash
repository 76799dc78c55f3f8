# Completions of kquota for bash, 3.2 and newer; the package bash-completion is not needed.

_kquota() {
    local program=@PROGRAM@
    local table=@TABLE@

    # bash cuts words at = and :, which are parts of ours.
    local line=${COMP_LINE:0:COMP_POINT} words=() word blank i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blank=${line%%[![:blank:]]*}
        line=${line#"$blank"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$line
        line=${line#*"$word"}
        if [[ $blank || $i == 0 ]]; then words+=("$word"); else words[${#words[@]} - 1]+=$word; fi
    done

    # What readline replaces is the end of the word, $2, and so what is before it must not stand in an answer.
    local stays=${words[${#words[@]} - 1]%"$2"}
    stays=${stays//[\"\'\\]/}

    # An older bash cannot leave out the space after one word: there it is ours to add.
    local mode= keep= rest new=
    if type compopt >/dev/null; then new=yes; fi
    while IFS=$'\t' read -r word rest; do
        if [[ ! $mode ]]; then
            mode=$word keep=$rest
            continue
        fi
        word=$keep$word
        word=${word#"$stays"}
        if [[ $word == *= ]]; then compopt -o nospace; elif [[ ! $new ]]; then word+=' '; fi
        COMPREPLY+=("$word")
    done < <(LC_ALL=C command awk "$program" "$table" typed "${words[@]}")

    # Where there is no answer, bash completes files by itself (-o default): its own way with their names is the best.
    [[ $new ]] || return 0
    case $mode in
        folders) compopt +o default -o dirnames ;;
        files) ;;
        *) compopt +o default ;;
    esac
} 2>/dev/null

if type compopt >/dev/null 2>&1; then
    complete -o default -F _kquota kquota
else
    complete -o default -o nospace -F _kquota kquota
fi
