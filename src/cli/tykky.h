// The names, options and messages of tykky, for scripts and habits that know those.
#pragma once

#include <string_view>

namespace containerize::cli {

/// Whether the program was called by one of tykky's four names: "conda-containerize" and so on.
bool is_name_of_tykky(std::string_view name);

/// Does what tykky does by that name; the exit code.
int run_as_tykky(std::string_view name, int argc, char** argv);

} // namespace containerize::cli
