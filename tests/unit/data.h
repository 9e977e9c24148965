// Files that other projects publish: see tests/data/README.md.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

namespace containerize::test {

inline const std::filesystem::path data_directory = CONTAINERIZE_SOURCE_DIR "/tests/data";

/// All files below `directory` of the data whose names have this ending, sorted.
inline std::vector<std::filesystem::path> data_files(std::string_view directory, std::string_view ending) {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data_directory / directory))
        if (entry.is_regular_file() && entry.path().native().ends_with(ending)) found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
}

} // namespace containerize::test
