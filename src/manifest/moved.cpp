#include "manifest/moved.h"

#include "core/entries.h"
#include "core/text.h"

#include <system_error>

namespace containerize::manifest {

namespace {

namespace fs = std::filesystem;

std::string move(const fs::path& from, const fs::path& to) {
    return "mv " + shell_quoted(from.string()) + " " + shell_quoted(to.string());
}

} // namespace

std::string command_to_move_back(const Manifest& manifest, const fs::path& prefix) {
    const fs::path& first = manifest.prefix;
    const auto removal = "rmdir " + shell_quoted(first.string()) + " && ";
    std::error_code failed;
    if (!fs::exists(first, failed)) return failed ? "" : move(prefix, first);
    if (fs::is_empty(first, failed)) return removal + move(prefix, first);
    // `mv` has moved it into the empty directory.
    if (prefix.parent_path() != first || names_in(first) != std::set{prefix.filename().string()}) return {};
    const fs::path aside = first.string() + ".moved";
    return move(prefix, aside) + " && " + removal + move(aside, first);
}

} // namespace containerize::manifest
