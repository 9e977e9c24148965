# Completion of `containerize` and `tykky` for bash; containerize.sh sources it in interactive shells.
# Functions of containerize.sh list the installations; without containerize.sh there is no `activate` either.

# The word as the shell will see it: "my\ env" and "'my env" are both "my env".
__containerize_unquoted() {
    local word=$1 out=
    case $word in
    \'*)
        printf '%s' "${word#\'}"
        return
        ;;
    \"*) word=${word#\"} ;;
    esac
    while [[ $word == *\\* ]]; do
        out+=${word%%\\*}
        word=${word#*\\}
        out+=${word:0:1}
        word=${word:1}
    done
    printf '%s' "$out$word"
}

# Does not use compgen -W, which would expand the names.
__containerize_complete_names() {
    local start name
    start=$(__containerize_unquoted "$1")
    while IFS= read -r name; do
        if [[ -n $name && $name == "$start"* ]]; then COMPREPLY+=("$name"); fi
    done <<<"$(__containerize_names 2>/dev/null | command sort -u)"
}

# Directories that are installations or contain some; if there are none, all directories, so that one can descend into them.
# Reading them may be slow on a parallel filesystem: after two seconds, the rest is offered without a check.
__containerize_complete_directories() {
    local all=() path place until=$((SECONDS + 2))
    while IFS= read -r path; do
        [[ -n $path ]] || continue
        all+=("$path")
        place=$path
        # shellcheck disable=SC2088 # compgen leaves it as it was typed
        if [[ $path == '~/'* ]]; then place=$HOME/${path:2}; fi
        if ((SECONDS > until)) || __containerize_leads_somewhere "$place" 2>/dev/null; then COMPREPLY+=("$path"); fi
    done <<<"$(compgen -d -- "$1")"
    if ((${#COMPREPLY[@]} == 0 && ${#all[@]} > 0)) && [[ $1 == */* ]]; then COMPREPLY=("${all[@]}"); fi
}

__containerize_complete_activate() {
    # Fails outside of a completion, as in a test.
    compopt -o filenames +o default +o bashdefault 2>/dev/null || :
    if [[ $1 != */* && $1 != '~'* ]]; then __containerize_complete_names "$1"; fi
    __containerize_complete_directories "$1"
}

# Removes duplicates, because it depends on its settings whether readline does.
__containerize_complete_once() {
    local seen=: word words=()
    for word in "${COMPREPLY[@]+"${COMPREPLY[@]}"}"; do
        [[ $seen == *":$word:"* ]] && continue
        seen+=$word:
        words+=("$word")
    done
    COMPREPLY=("${words[@]+"${words[@]}"}")
}

__containerize_complete() {
    local IFS=$' \t\n' word=${COMP_WORDS[COMP_CWORD]} commands
    COMPREPLY=()
    commands="new wrap-install wrap-container import-tykky update dev log rollback squash run shell inspect profile stats check doctor cache base activate deactivate config launch job stage kernel"
    if [[ ${COMP_WORDS[0]##*/} == tykky ]]; then commands="activate deactivate"; fi
    if ((COMP_CWORD == 1)); then
        # shellcheck disable=SC2207 # these words are ours
        COMPREPLY=($(compgen -W "$commands" -- "$word"))
    elif [[ ${COMP_WORDS[1]} == activate ]]; then
        if ((COMP_CWORD == 2)); then __containerize_complete_activate "$word"; fi
        __containerize_complete_once
    elif [[ ${COMP_WORDS[1]} == deactivate ]]; then
        compopt +o default +o bashdefault 2>/dev/null || :
    fi
}

# If the function offers nothing, file names are completed, such as those of specifications or installations.
complete -o bashdefault -o default -F __containerize_complete containerize
complete -F __containerize_complete tykky
