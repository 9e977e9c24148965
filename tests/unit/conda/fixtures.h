// Files of other projects that are kept beside the source: CONTAINERIZE_FIXTURES, or ../shared/fixtures.
#pragma once

#include "util/filesystem.h"

#include <cstdlib>

namespace containerize::test {

/// Empty where they are not there.
inline fs::path fixtures() {
    const char* given = std::getenv("CONTAINERIZE_FIXTURES");
    fs::path path =
        given != nullptr ? fs::path(given) : fs::path(CONTAINERIZE_SOURCE_DIR "/../shared/fixtures");
    std::error_code ignored;
    return fs::is_directory(path / "conda", ignored) ? path : fs::path();
}

} // namespace containerize::test
