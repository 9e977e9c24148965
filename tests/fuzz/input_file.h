// Input for functions that read a path.
#pragma once

#include "../unit/temporary.h"

#include <string>
#include <string_view>

namespace containerize::fuzz {

/// All inputs of this process are written to one directory.
inline const test::TemporaryDirectory& input_directory() {
    static const test::TemporaryDirectory directory;
    return directory;
}

inline fs::path input_file(const std::string& name, std::string_view bytes) {
    return input_directory().write(name, bytes);
}

} // namespace containerize::fuzz
