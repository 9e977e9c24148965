// The exit codes of containerize, its launchers and containerize-rank, and their documentation.
#pragma once

#include <array>
#include <string_view>

namespace containerize {

inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_cannot_execute = 126;
inline constexpr int exit_not_found = 127;
inline constexpr int exit_signal = 128; ///< plus the signal's number

struct ExitCodeInfo {
    int code;
    std::string_view meaning;
};
inline constexpr auto exit_codes = std::to_array<ExitCodeInfo>({
    {0, "Success. A wrapped program returns its own exit code."},
    {exit_failure, "Something failed, or `check` or `doctor` found a problem."},
    {exit_usage,
     "The command line, a file or a value that you gave is wrong. tykky's commands return 2 only for a wrong "
     "command line."},
    {exit_cannot_execute, "The program cannot be executed."},
    {exit_not_found, "The program was not found."},
    {exit_signal, "128 + N: signal N ended the program, such as 130 for Ctrl-C and 143 for `kill`."},
});

} // namespace containerize
