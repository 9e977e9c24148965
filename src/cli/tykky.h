// tykky's command names, options and messages, for existing scripts and users.
#pragma once

#include <string_view>

namespace containerize::cli {

/// Whether `name` is one of tykky's four commands, such as "conda-containerize".
bool is_name_of_tykky(std::string_view name);

/// Runs tykky's command `name`. Returns the exit code.
int run_as_tykky(std::string_view name, int argc, char** argv);

} // namespace containerize::cli
