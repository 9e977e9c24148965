// Running other programs: by argument vector, never through a shell that we did not mean.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace containerize {

using Environment = std::map<std::string, std::string>;

/// The environment of this process, taken once at start.
Environment current_environment();

struct Command {
    std::vector<std::string> argv; ///< argv[0] is looked up on PATH of `environment` if it has no '/'
    std::optional<Environment> environment;  ///< the whole environment; the caller's own if absent
    std::filesystem::path working_directory; ///< empty: the caller's
    std::function<int()> in_child; ///< called in the child before exec (join a namespace); 0, or an errno
    std::function<void(std::string_view)>
        on_line; ///< each line of stdout and stderr as it comes, without newline
};

struct Outcome {
    int exit_code = 0;  ///< as the shell has it: 128 + N for death by signal N
    std::string output; ///< stdout and stderr together, at most the last 1 MiB; of capture(): stdout, whole
    std::string errors; ///< of capture() alone: stderr, at most the last 1 MiB
    [[nodiscard]] bool ok() const { return exit_code == 0; }
};

/// Runs to the end, with stdin from /dev/null. Output goes to the build log (util/log.h) line by line.
/// An error means that the program could not be started; a program that fails is an Outcome.
/// The child is killed, with its process group, when this process dies or an interrupt arrives
/// (util/interrupt.h): SIGTERM, after five seconds SIGKILL, and the error says "interrupted". What it leaves
/// in the background of its process group is killed when it ends.
Result<Outcome> run(const Command& command);

/// As run(), but stdout alone, whole, for programs that are asked a question; stderr goes to the log
/// and to `on_line`.
Result<Outcome> capture(const Command& command);

enum class Keyboard {
    for_program,  ///< what it sends is for the program alone, such as a shell
    interrupts_us ///< Ctrl-C ends what the program is a part of, too, however it takes it itself
};
/// Runs a program with our own stdin, stdout and stderr, so that it can be a shell; its exit code.
Result<int> run_in_foreground(const Command& command, Keyboard keyboard = Keyboard::for_program);

/// The first executable of this name on PATH-like `path`; nothing if there is none. `accept` may refuse
/// candidates.
std::optional<std::filesystem::path>
find_program(std::string_view name, std::string_view path,
             const std::function<bool(const std::filesystem::path&)>& accept = {});

/// The last `lines` lines of `text`, each indented by two spaces: for messages about a failed program.
std::string tail(std::string_view text, std::size_t lines);

} // namespace containerize
