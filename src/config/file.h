// One file of a configuration, ours or tykky's.
#pragma once

#include "config/config.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::config {

struct FileContent {
    std::vector<Given> statements;  ///< in the order in which they count
    std::vector<std::string> notes; ///< what means nothing here
    std::vector<Error> mistakes;
};

FileContent read_file_content(const std::filesystem::path& file);

/// The file that tykky calls CW_GLOBAL_YAML. Only mistakes in keys that mean something here are any.
FileContent read_tykky_file(const std::filesystem::path& file);

} // namespace containerize::config
