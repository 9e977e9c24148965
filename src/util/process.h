// Running other programs, by an argument vector and never through an unwanted shell.
#pragma once

#include "core/error.h"
#include "core/variables.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace containerize {

struct Command {
    std::vector<std::string> argv; ///< argv[0] without '/' is looked up on PATH of `environment`
    std::optional<Environment> environment = {};  ///< the whole environment; the caller's own if absent
    std::filesystem::path working_directory = {}; ///< empty: the caller's
    /// Called in the child between fork and exec, such as to join a namespace; must be async-signal-safe.
    /// Returns 0 or an errno.
    std::function<int()> in_child = {};
    /// Called with each line of stdout and stderr, without its newline.
    std::function<void(std::string_view)> on_line = {};
};

struct Outcome {
    int exit_code = 0;       ///< as in the shell: 128 + N for death by signal N
    std::string output = {}; ///< stdout and stderr, at most the last 1 MiB; from capture(): stdout, complete
    std::string errors = {}; ///< only from capture(): stderr, at most the last 1 MiB
    [[nodiscard]] bool ok() const { return exit_code == 0; }
};

/// Runs a program to its end, with stdin from /dev/null. Output goes to the build log (util/log.h) line by
/// line. Fails if the program could not be started; one that fails itself is an Outcome. When this process
/// dies, the child's process group is killed. After an interrupt (core/interrupt.h) it gets SIGTERM and, five
/// seconds later, SIGKILL, and the error says "interrupted". What the program leaves in the background of its
/// group is killed when it ends.
Result<Outcome> run(const Command& command);

/// The same for programs that are asked a question: the output is all of stdout; stderr goes to the log and
/// to `on_line`. Fails if the output is larger than 64 MiB.
Result<Outcome> capture(const Command& command);

enum class Keyboard {
    for_program,  ///< its signals are only for the program, such as a shell
    interrupts_us ///< Ctrl-C ends this process's work, too, however the program takes it
};
/// Runs a program with our own stdin, stdout and stderr, so that it can be a shell. Returns its exit code.
/// The first SIGTERM or SIGHUP is passed on to the program.
Result<int> run_in_foreground(const Command& command, Keyboard keyboard = Keyboard::for_program);

/// The first executable file of this name in the directories of `path`, a list like PATH; nullopt if there is
/// none. `accept` may reject candidates.
std::optional<std::filesystem::path>
find_program(std::string_view name, std::string_view path,
             const std::function<bool(const std::filesystem::path&)>& accept = {});

/// The last `lines` lines of `text`, each indented by two spaces: for messages about a failed program.
std::string tail(std::string_view text, std::size_t lines);

} // namespace containerize
