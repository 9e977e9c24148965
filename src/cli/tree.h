// The command line as a tree of commands and options. Parsing, help and everything in src/reference is made
// from it.
#pragma once

#include "core/error.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace containerize::cli {

/// Returns the exit code of the process.
using Action = std::function<Result<int>()>;

/// What the user typed, and what is to be done.
struct Call {
    std::vector<std::string> words;   ///< all of it, with the program's name
    std::vector<std::string> program; ///< what follows "--", if the command takes a program
    std::string line;                 ///< all of it without secrets, as recorded in installations
    Action action;                    ///< set by parsing; empty if no command was given
};

/// The names by which the program is called: its own and those of tykky.
inline constexpr std::array<std::string_view, 5> programs = {
    "containerize", "conda-containerize", "pip-containerize", "wrap-container", "wrap-install"};
/// A shell function only. Its tree is for completions.
inline constexpr std::string_view tykky_function = "tykky";

/// The tree of one of these. Parsing it sets `call.action`.
std::unique_ptr<CLI::App> make_tree(std::string_view name, Call& call);

/// Whether a command takes a program after "--", which is to be separated before CLI11 parses.
bool takes_program(const CLI::App& command);

} // namespace containerize::cli
