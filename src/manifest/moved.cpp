#include "manifest/moved.h"

#include "core/text.h"

#include <system_error>

namespace containerize::manifest {

namespace {

namespace fs = std::filesystem;

std::string move(const fs::path& from, const fs::path& to) {
    return "mv " + shell_quoted(from.string()) + " " + shell_quoted(to.string());
}

bool is_only_entry_of(const fs::path& directory, const fs::path& entry) {
    std::error_code failed;
    fs::directory_iterator first(directory, failed);
    return !failed && first != fs::directory_iterator() && first->path() == entry &&
           first.increment(failed) == fs::directory_iterator();
}

} // namespace

std::string command_to_move_back(const Manifest& manifest, const fs::path& prefix) {
    const fs::path& first = manifest.prefix;
    const auto removal = "rmdir " + shell_quoted(first.string()) + " && ";
    std::error_code failed;
    if (!fs::exists(first, failed)) return failed ? "" : move(prefix, first);
    if (fs::is_empty(first, failed)) return removal + move(prefix, first);
    // `mv` has moved it into the empty directory.
    if (!is_only_entry_of(first, prefix)) return {};
    const fs::path aside = first.string() + ".moved";
    return move(prefix, aside) + " && " + removal + move(aside, first);
}

} // namespace containerize::manifest
