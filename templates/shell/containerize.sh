# shellcheck shell=sh
# Puts installations on PATH: `containerize activate NAME|DIR` and `containerize deactivate`, and the same as `tykky`.
#
# To be sourced by bash, zsh, ksh, mksh or dash, from /etc/profile.d or ~/.bashrc. A program cannot change the PATH of
# the shell that starts it, so these are functions; they pass all other commands on to the program.
#
# This runs inside other people's shells. So every name has the prefix __containerize_ (not all of these shells have
# local variables), nothing depends on IFS or on options, and commands that may fail are in conditions, for `set -e`.

# Only the shell knows which file it is reading. eval hides the expansions from shells that cannot parse them.
__containerize_file=
if [ -n "${BASH_VERSION-}" ]; then
    eval '__containerize_file=${BASH_SOURCE-}'
elif [ -n "${ZSH_VERSION-}" ]; then
    eval '__containerize_file=${(%):-%x}'
else
    case "${KSH_VERSION-}" in
    *' 93'*) eval '__containerize_file=${.sh.file}' ;;
    esac
fi

__containerize_error() {
    printf 'ERROR: %s\n' "$*" >&2
}

__containerize_warning() {
    printf 'WARNING: %s\n' "$*" >&2
}

__containerize_real() {
    command readlink -f -- "$1"
}

# ---- Where the program is

# Finds the program even if functions or aliases have its name. In a subshell, in which these can be removed.
__containerize_program() (
    unalias containerize 2>/dev/null || :
    unset -f containerize 2>/dev/null || :
    command -v containerize
)

__containerize_is_prefix() {
    [ -f "$1/bin/containerize" ] && [ -x "$1/bin/containerize" ]
}

# Prints the prefix in which the program is installed: the one of this file ($1) if the shell knew it, otherwise the one that
# CONTAINERIZE_ROOT or PATH gives.
__containerize_prefix() {
    if [ -n "$1" ]; then
        __containerize_guess=$(__containerize_real "$1") || __containerize_guess=
        __containerize_guess=${__containerize_guess%/share/containerize/shell/*}
        if __containerize_is_prefix "$__containerize_guess"; then
            printf '%s\n' "$__containerize_guess"
            return 0
        fi
    fi
    if [ -n "${CONTAINERIZE_ROOT-}" ] && __containerize_is_prefix "$CONTAINERIZE_ROOT"; then
        printf '%s\n' "${CONTAINERIZE_ROOT%/}"
        return 0
    fi
    __containerize_guess=$(__containerize_program) || return 1
    __containerize_guess=$(__containerize_real "$__containerize_guess") || return 1
    printf '%s\n' "${__containerize_guess%/bin/*}"
}

__containerize_setup() {
    [ -z "${ZSH_VERSION-}" ] || emulate -L sh
    __containerize_root=$(__containerize_prefix "$__containerize_file") || __containerize_root=
    # At the end of PATH, so that it hides no other program.
    if [ -n "$__containerize_root" ] && ! __containerize_program >/dev/null 2>&1; then
        PATH=${PATH:+$PATH:}$__containerize_root/bin
        export PATH
    fi
    case $- in
    *i*) __containerize_completion "$__containerize_root/share" ;;
    esac
    unset __containerize_root
}

__containerize_completion() {
    if [ -n "${BASH_VERSION-}" ] && [ -r "$1/bash-completion/completions/containerize" ]; then
        # shellcheck source=/dev/null
        . "$1/bash-completion/completions/containerize"
    elif [ -n "${ZSH_VERSION-}" ] && [ -r "$1/zsh/site-functions/_containerize" ]; then
        # A later compinit finds the file in fpath; if compinit has already run, compdef is needed.
        case ":${FPATH-}:" in
        *":$1/zsh/site-functions:"*) ;;
        *) FPATH=$1/zsh/site-functions${FPATH:+:$FPATH} ;;
        esac
        if command -v compdef >/dev/null; then
            autoload -Uz _containerize
            compdef _containerize containerize tykky conda-containerize pip-containerize wrap-container wrap-install
        fi
    fi
}

# ---- Finding the installation

# One with common.sh was made by tykky.
__containerize_is_installation() {
    [ -d "$1/bin" ] && { [ -f "$1/containerize.json" ] || [ -f "$1/common.sh" ]; }
}

__containerize_search_path() {
    if [ -n "${CONTAINERIZE_PATH-}${TYKKY_PATH-}" ]; then
        printf '%s\n' "${CONTAINERIZE_PATH-}${CONTAINERIZE_PATH:+${TYKKY_PATH:+:}}${TYKKY_PATH-}"
    elif [ -n "${HOME-}" ]; then
        printf '%s\n' "$HOME/.containerize:$HOME/.tykky"
    fi
}

# Prints the real path of the installation NAME|DIR. This function and those that it calls run in a subshell, so their
# variables do not stay.
__containerize_find() {
    case "$1" in
    */* | . | ..) __containerize_find_directory "$1" ;;
    *) __containerize_find_name "$1" ;;
    esac
}

__containerize_find_directory() {
    if __containerize_is_installation "$1"; then
        __containerize_real "$1"
    elif [ -d "$1" ]; then
        __containerize_error "$1 is not an installation: it has no containerize.json or no bin/"
        return 1
    else
        __containerize_error "the directory $1 does not exist"
        return 1
    fi
}

# Splits the path by hand, because IFS must not be changed and zsh does no word splitting.
__containerize_find_name() {
    __containerize_first='' __containerize_others=''
    __containerize_searched=$(__containerize_search_path)
    __containerize_rest=$__containerize_searched:
    while [ -n "$__containerize_rest" ]; do
        __containerize_dir=${__containerize_rest%%:*}
        __containerize_rest=${__containerize_rest#*:}
        if [ -z "$__containerize_dir" ] || ! __containerize_is_installation "$__containerize_dir/$1"; then
            continue
        fi
        __containerize_candidate=$(__containerize_real "$__containerize_dir/$1")
        if [ -z "$__containerize_first" ]; then
            __containerize_first=$__containerize_candidate
        elif [ "$__containerize_candidate" != "$__containerize_first" ]; then
            __containerize_others="$__containerize_others${__containerize_others:+, }$__containerize_candidate"
        fi
    done
    __containerize_here=
    if __containerize_is_installation "./$1"; then
        __containerize_here=$(__containerize_real "./$1")
    fi
    __containerize_choose "$1"
}

# An installation in the working directory has precedence, as with tykky.
__containerize_choose() {
    if [ -n "$__containerize_here" ] && [ -n "$__containerize_first" ] &&
        [ "$__containerize_here" != "$__containerize_first" ]; then
        __containerize_warning "using $__containerize_here in the working directory, not $__containerize_first"
        printf '%s\n' "$__containerize_here"
    elif [ -n "$__containerize_first" ]; then
        [ -z "$__containerize_others" ] ||
            __containerize_warning "using the first $1, $__containerize_first, not $__containerize_others"
        printf '%s\n' "$__containerize_first"
    elif [ -n "$__containerize_here" ]; then
        printf '%s\n' "$__containerize_here"
    elif [ -d "./$1" ]; then
        __containerize_error "./$1 is not an installation: it has no containerize.json or no bin/"
        return 1
    else
        __containerize_error "no installation $1 in the working directory or in ${__containerize_searched:-CONTAINERIZE_PATH}: give its path, or add the directory that contains it to CONTAINERIZE_PATH"
        return 1
    fi
}

# ---- Changing the shell, and changing it back

# Removes the first $1 from PATH, wherever it is, and leaves everything else unchanged, even empty elements.
__containerize_leave_path() {
    __containerize_wrapped=":${PATH-}:"
    case "$__containerize_wrapped" in
    *":$1:"*)
        __containerize_wrapped=${__containerize_wrapped%%":$1:"*}:${__containerize_wrapped#*":$1:"}
        __containerize_wrapped=${__containerize_wrapped#:}
        PATH=${__containerize_wrapped%:}
        export PATH
        ;;
    esac
    unset __containerize_wrapped
}

# Shells expand their prompts, so characters of the name that have a meaning there are replaced.
__containerize_enter_prompt() {
    [ "${CONTAINERIZE_CHANGE_PS1-}" != 0 ] && [ "${TYKKY_CHANGE_PS1-}" != 0 ] && [ -n "${PS1-}" ] || return 0
    case $- in
    *i*) ;;
    *) return 0 ;;
    esac
    # shellcheck disable=SC1003 # that is one backslash for tr, as meant
    __containerize_shown="($(printf '%s' "$1" | command tr '\\`$!%[:cntrl:]' '_')) "
    __containerize_return=$(printf '\r')
    case "$PS1" in
    ?"$__containerize_return"*)
        # In mksh, the first character marks text without width; it and the carriage return must stay in front.
        __containerize_rest=${PS1#??}
        PS1=${PS1%"$__containerize_rest"}$__containerize_shown$__containerize_rest
        unset __containerize_rest
        ;;
    *) PS1=$__containerize_shown$PS1 ;;
    esac
    unset __containerize_return
}

# Something else may have been prepended in the meantime, or the prompt may have been replaced.
__containerize_leave_prompt() {
    if [ -n "${__containerize_shown-}" ]; then
        case "${PS1-}" in
        *"$__containerize_shown"*) PS1=${PS1%%"$__containerize_shown"*}${PS1#*"$__containerize_shown"} ;;
        esac
    fi
    unset __containerize_shown
}

# The shell may have cached the paths of programs. `hash -r` fails if that is switched off.
__containerize_forget_programs() {
    hash -r 2>/dev/null || :
}

__containerize_enter() {
    CONTAINERIZE_ACTIVE=$1
    TYKKY_PREFIX=$1
    PATH=$1/bin${PATH:+:$PATH}
    export CONTAINERIZE_ACTIVE TYKKY_PREFIX PATH
    __containerize_enter_prompt "$2"
    __containerize_forget_programs
}

__containerize_leave() {
    __containerize_leave_path "$CONTAINERIZE_ACTIVE/bin"
    unset CONTAINERIZE_ACTIVE TYKKY_PREFIX
    __containerize_leave_prompt
    __containerize_forget_programs
}

# ---- Commands. $1 is the name of the command: containerize or tykky.

__containerize_usage() {
    printf '%s\n' "Usage: $1 activate NAME|DIR   put an installation on PATH" \
        "       $1 deactivate          remove it from PATH again"
}

__containerize_activate() {
    case "${2-}" in
    -h | --help)
        __containerize_usage "$1"
        return 0
        ;;
    -*)
        __containerize_error "unknown option $2; usage: $1 activate NAME|DIR"
        return 1
        ;;
    esac
    if [ "$#" != 2 ] || [ -z "$2" ]; then
        __containerize_error "give one installation: $1 activate NAME|DIR"
        return 1
    fi
    __containerize_found=$(__containerize_find "$2") || {
        unset __containerize_found
        return 1
    }
    case "$__containerize_found" in
    *:*)
        __containerize_error "PATH cannot contain $__containerize_found: it has a colon in its name"
        unset __containerize_found
        return 1
        ;;
    esac
    [ -z "${CONTAINERIZE_ACTIVE-}" ] || __containerize_leave
    case "$2" in
    */* | . | ..) __containerize_enter "$__containerize_found" "${__containerize_found##*/}" ;;
    *) __containerize_enter "$__containerize_found" "$2" ;;
    esac
    unset __containerize_found
}

__containerize_deactivate() {
    case "${2-}" in
    -h | --help)
        __containerize_usage "$1"
        return 0
        ;;
    esac
    if [ "$#" != 1 ]; then
        __containerize_error "$1 deactivate takes no argument"
        return 1
    fi
    if [ -z "${CONTAINERIZE_ACTIVE-}" ]; then
        __containerize_error "no installation is active"
        return 1
    fi
    __containerize_leave
}

# `emulate` in zsh switches off options like `set -e` until the function returns, and then a failure counts only if it is
# returned explicitly.
__containerize_command() {
    [ -z "${ZSH_VERSION-}" ] || emulate -L sh
    case "${1-}" in
    activate)
        shift
        __containerize_activate containerize "$@"
        ;;
    deactivate)
        shift
        __containerize_deactivate containerize "$@"
        ;;
    *) command containerize "$@" ;;
    esac
    return "$?"
}

__containerize_tykky() {
    [ -z "${ZSH_VERSION-}" ] || emulate -L sh
    case "${1-}" in
    activate)
        shift
        __containerize_activate tykky "$@"
        ;;
    deactivate)
        shift
        __containerize_deactivate tykky "$@"
        ;;
    '' | -h | --help | help) __containerize_usage tykky ;;
    *)
        __containerize_error "tykky has no command $1 here; create installations with \`containerize new\`"
        __containerize_usage tykky >&2
        return 1
        ;;
    esac
    return "$?"
}

# ---- For the completions

# Prints the names of installations in the search path and the working directory. In a subshell, because it changes options.
__containerize_names() (
    [ -z "${ZSH_VERSION-}" ] || emulate sh
    [ -z "${BASH_VERSION-}" ] || eval 'shopt -u failglob dotglob'
    set +f
    __containerize_rest=$(__containerize_search_path):.:
    while [ -n "$__containerize_rest" ]; do
        __containerize_dir=${__containerize_rest%%:*}
        __containerize_rest=${__containerize_rest#*:}
        [ -n "$__containerize_dir" ] || continue
        for __containerize_entry in "$__containerize_dir"/*; do
            if __containerize_is_installation "$__containerize_entry"; then
                printf '%s\n' "${__containerize_entry##*/}"
            fi
        done
    done
)

# Whether DIR is an installation or directly contains one.
__containerize_leads_somewhere() (
    [ -z "${ZSH_VERSION-}" ] || emulate sh
    [ -z "${BASH_VERSION-}" ] || eval 'shopt -u failglob'
    set +f
    __containerize_is_installation "$1" && exit 0
    for __containerize_entry in "$1"/*/bin; do
        __containerize_is_installation "${__containerize_entry%/bin}" && exit 0
    done
    exit 1
)

__containerize_setup
unset __containerize_file

# An alias would take precedence over the function. eval is needed because ksh expands aliases when it reads the file.
unalias containerize 2>/dev/null || :
unalias tykky 2>/dev/null || :
eval 'containerize() { __containerize_command "$@"; }'
eval 'tykky() { __containerize_tykky "$@"; }'
