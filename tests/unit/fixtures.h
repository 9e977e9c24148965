// Real data from other projects, which is not part of the repository.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

namespace containerize::test {

/// The directory of the fixtures: CONTAINERIZE_FIXTURES, or "shared/fixtures" beside the repository.
inline std::filesystem::path fixture_directory() {
    const char* given = std::getenv("CONTAINERIZE_FIXTURES");
    return given != nullptr ? std::filesystem::path(given)
                            : std::filesystem::path(CONTAINERIZE_SOURCE_DIR) / "../shared/fixtures";
}

/// All files below `directory` of the fixtures whose names have this ending; none if there are no fixtures.
inline std::vector<std::filesystem::path> fixtures(std::string_view directory, std::string_view ending) {
    std::vector<std::filesystem::path> found;
    std::error_code missing;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(fixture_directory() / directory, missing))
        if (entry.is_regular_file() && entry.path().native().ends_with(ending)) found.push_back(entry.path());
    return found;
}

} // namespace containerize::test
