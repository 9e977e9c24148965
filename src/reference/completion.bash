# Completion of containerize and tykky's commands for bash. containerize.sh sources it, too. It is made from
# src/reference/completion.bash and the program's commands.
# Functions of containerize.sh list the installations; without containerize.sh there is no `activate` either.

# Sets __containerize_words to what may follow the command $1.
__containerize_find_words() {
    case $1 in
@table@
    esac
}

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
__containerize_offer_names() {
    local start name
    start=$(__containerize_unquoted "$1")
    while IFS= read -r name; do
        if [[ -n $name && $name == "$start"* ]]; then COMPREPLY+=("$name"); fi
    done <<<"$(__containerize_names 2>/dev/null | command sort -u)"
}

# Directories that are installations or contain some; if there are none, all directories, so that one can descend into them.
# Reading them may be slow on a parallel filesystem: after two seconds, the rest is offered without a check.
__containerize_offer_places() {
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

# Removes duplicates, because it depends on its settings whether readline does.
__containerize_once() {
    local seen=: word words=()
    for word in "${COMPREPLY[@]+"${COMPREPLY[@]}"}"; do
        [[ $seen == *":$word:"* ]] && continue
        seen+=$word:
        words+=("$word")
    done
    COMPREPLY=("${words[@]+"${words[@]}"}")
}

# Offers what begins like $1 of the values $2: words, or kinds of words after "@". For files, the function offers nothing
# itself, because readline then completes names of files.
__containerize_offer() {
    local value line words=()
    local -a values
    IFS='|' read -ra values <<<"$2"
    for value in "${values[@]}"; do
        case $value in
        '' | @files) ;;
        @nothing) compopt +o default +o bashdefault 2>/dev/null || : ;; # fails outside of a completion, as in a test
        @directories)
            compopt -o filenames +o default +o bashdefault 2>/dev/null || :
            while IFS= read -r line; do [[ -z $line ]] || COMPREPLY+=("$line"); done <<<"$(compgen -d -- "$1")"
            ;;
        @commands)
            while IFS= read -r line; do [[ -z $line ]] || COMPREPLY+=("$line"); done <<<"$(compgen -c -- "$1")"
            ;;
        @installations)
            compopt -o filenames +o default +o bashdefault 2>/dev/null || :
            if [[ $1 != */* && $1 != '~'* ]]; then __containerize_offer_names "$1"; fi
            __containerize_offer_places "$1"
            ;;
        *) words+=("$value") ;;
        esac
    done
    # shellcheck disable=SC2207 # these words are ours
    ((${#words[@]} == 0)) || COMPREPLY+=($(compgen -W "${words[*]}" -- "$1"))
    __containerize_once
}

# What the option or position $1 takes; for a command, its name.
__containerize_values_of() {
    local one
    for one in "${__containerize_words[@]}"; do
        case $one in
        "$1="* | "$1") printf '%s' "${one#*=}" ;;
        esac
    done
}

__containerize_complete() {
    local IFS=$' \t\n' command=${COMP_WORDS[0]##*/} word=${COMP_WORDS[COMP_CWORD]}
    local __containerize_words=('') expected='' position=1 after_mark='' i one
    COMPREPLY=()
    __containerize_find_words "$command"
    for ((i = 1; i < COMP_CWORD; i++)); do
        one=${COMP_WORDS[i]}
        # readline splits words at "=" and ":".
        if [[ $one == = ]]; then
            continue
        elif [[ $one == : ]]; then
            i=$((i + 1))
        elif [[ -n $expected ]]; then
            expected=
        elif [[ $one == -- ]]; then
            after_mark=1
        elif [[ $one == -* && -z $after_mark ]]; then
            expected=$(__containerize_values_of "$one")
            if [[ $expected == "$one" ]]; then expected=; fi
        elif ((position == 1)) && [[ $(__containerize_values_of "$one") == "$one" ]]; then
            command+=" $one"
            __containerize_find_words "$command"
        else
            position=$((position + 1))
        fi
    done
    if [[ $word == = ]]; then word=; fi
    if [[ -n $after_mark ]]; then position='*'; fi
    if [[ -n $expected ]]; then
        __containerize_offer "$word" "$expected"
        return
    fi
    expected=$(__containerize_values_of "$position")
    if [[ -z $expected ]]; then expected=$(__containerize_values_of '*'); fi
    for one in "${__containerize_words[@]}"; do
        case $one in
        -*) if [[ $word == -* && -z $after_mark ]]; then expected+="|${one%%=*}"; fi ;;
        *=*) ;;
        *) if [[ $position == 1 ]]; then expected+="|$one"; fi ;;
        esac
    done
    __containerize_offer "$word" "${expected:-@nothing}"
}

complete -o bashdefault -o default -F __containerize_complete containerize tykky \
    conda-containerize pip-containerize wrap-container wrap-install
