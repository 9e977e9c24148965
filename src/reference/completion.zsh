#compdef containerize tykky conda-containerize pip-containerize wrap-container wrap-install
# Completion of containerize and tykky's commands for zsh. containerize.sh adds this directory to fpath. It is made from
# src/reference/completion.zsh and the program's commands.
# Functions of containerize.sh list the installations; without containerize.sh there is no `activate` either.

__containerize_glob_leads_somewhere() {
    __containerize_leads_somewhere "$REPLY" 2>/dev/null
}

__containerize_installations() {
    local -a names
    local expl found=1
    if [[ $PREFIX != */* ]]; then
        names=(${(fu)"$(__containerize_names 2>/dev/null)"})
        _wanted installations expl installation compadd -a names && found=0
    fi
    # Installations and directories that contain some; if there are none, all directories, so that one can descend into them.
    _wanted directories expl directory _path_files -g '*(-/+__containerize_glob_leads_somewhere)' && found=0
    if (( found )) && [[ $PREFIX == */* ]]; then
        _wanted directories expl directory _path_files -/ && found=0
    fi
    return found
}

# Offers the words of $1, and what is of the kind $2.
__containerize_value() {
    local found=1
    [[ -n $1 ]] && compadd -- ${=1} && found=0
    case $2 in
    files) _files && found=0 ;;
    directories) _files -/ && found=0 ;;
    commands) _normal && found=0 ;;
    installations) __containerize_installations && found=0 ;;
    esac
    return found
}

# Completes the arguments of the command $1. They are in $words, after the command's name.
__containerize_arguments() {
    local -a arguments commands
    local state line
    typeset -A opt_args
    case $1 in
@table@
    esac
    if (( ! $#commands )); then
        _arguments -s $arguments
        return
    fi
    _arguments -C $arguments '1: :->command' '*:: :->arguments' && return
    case $state in
    command) _describe -t commands command commands ;;
    arguments) __containerize_arguments "$1 $words[1]" ;;
    esac
}

__containerize_arguments $service
