// What --version prints.
#pragma once

#include <string>

namespace containerize::cli {

/// "containerize VERSION", with the commit it was built from if that is known, and a line for each library.
std::string version_text();

} // namespace containerize::cli
