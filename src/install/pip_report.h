// What pip installed, in a form in which it can be installed again.
#pragma once

#include "spec/requirements.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::install {

struct PipReport {
    std::vector<std::string> requirements; ///< each with its version or its source, and its checksum; sorted
    std::vector<std::string> requested;    ///< names that somebody asked for, normalised; sorted
};

/// `text` is of `pip install --report`; nothing if it is none.
std::optional<PipReport> parse_pip_report(std::string_view text);

/// Options that say where and how to look, of the requirements and of what they include. Directories among
/// them become absolute: `directory` is where pip ran.
std::vector<std::string> lasting_options(const spec::Requirements& requirements,
                                         const std::filesystem::path& directory);

} // namespace containerize::install
