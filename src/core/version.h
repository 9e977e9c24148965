// The version of containerize: MAJOR.MINOR.PATCH. What each part means is in docs/reference/versions.md.
#pragma once

#include <string_view>

namespace containerize {

/// The version of the program that is running. Its definition, this_version.cpp, is the only source that is
/// compiled again for another version.
extern const char* const this_version;

/// Whether `one` is a newer version than `other`. An empty text is older than every version. A text that is
/// no version is newer, because only later versions can have written it.
bool is_newer(std::string_view one, std::string_view other);

} // namespace containerize
