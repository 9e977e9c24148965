// Reads one configuration file, ours or tykky's.
#pragma once

#include "config/configuration.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::config {

struct FileContent {
    std::vector<Given> statements = {};  ///< in order of increasing precedence
    std::vector<std::string> notes = {}; ///< about keys without effect
    std::vector<Error> mistakes;
};

FileContent read_file_content(const std::filesystem::path& file);

/// Reads the file named by tykky's CW_GLOBAL_YAML. Reports mistakes only in keys that have a meaning here.
FileContent read_tykky_file(const std::filesystem::path& file);

} // namespace containerize::config
