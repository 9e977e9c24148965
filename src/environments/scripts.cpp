#include "environments/scripts.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "wheel/scripts.h"

#include <string>
#include <string_view>

namespace containerize::environments {

namespace {

// To sh this is the command to run; to Python, which reads the file next, the start of a string.
constexpr std::string_view start_of_pip = "#!/bin/sh\n'''exec' \"";
constexpr std::string_view end_of_pip = "\n' '''\n";

} // namespace

Status repair_scripts(const fs::path& directory, const fs::path& prefix) {
    if (prefix.string().find_first_of("$`\"\\") == std::string::npos) return {};
    std::error_code failed;
    for (const auto& entry : entries_in(directory, failed)) {
        if (!fs::is_regular_file(entry.symlink_status(failed))) continue;
        const auto text = TRY(read_file(entry.path()));
        const auto end = text.find(end_of_pip);
        if (!text.starts_with(start_of_pip) || end == std::string::npos) continue;
        const auto rest = text.substr(end + end_of_pip.size());
        TRY(write_file(entry.path(), wheel::script_start_beside("python") + rest, true));
    }
    if (failed)
        return fail_errno("cannot list the environment's commands", directory.string(), failed.value());
    return {};
}

} // namespace containerize::environments
