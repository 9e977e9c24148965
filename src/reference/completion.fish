# Completion of containerize and tykky's commands for fish. It is made from src/reference/completion.fish and the program's
# commands.

# Whether the command line is at the command $argv, such as `containerize cache info`.
function __containerize_is_at
    set -l words (commandline -opc)
    set -l command (basename $words[1])
    for word in $words[2..]
        if contains -- "$command $word" $__containerize_commands
            set command "$command $word"
        end
    end
    test "$command" = "$argv"
end

@table@
