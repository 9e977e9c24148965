// Parses what was typed, and explains mistakes in one line.
#pragma once

#include "cli/tree.h"

#include <optional>

namespace containerize::cli {

/// A help text, the version, or a mistake. `code` is the exit code.
struct Answer {
    int code = 0;
    std::string text = {};
    std::string command = {}; ///< the one in which the mistake is, such as "containerize cache info"
};

/// Parses `call.words`. Returns nothing if there is something to run: `call.action`.
std::optional<Answer> parse(CLI::App& tree, Call& call);

} // namespace containerize::cli
