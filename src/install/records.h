// What an installation keeps for people: its inputs, what was installed, and the log.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include <nlohmann/json.hpp>

namespace containerize::install {

struct Records {
    std::vector<std::filesystem::path> inputs;
    std::string packages; ///< one a line
    std::string lock;     ///< empty if there is none
    std::filesystem::path log;
};

/// Fills `share`: inputs/ with copies that have no secrets (util/redact.h), packages.txt, containerize.lock,
/// build.log. Returns a list for the manifest: where each input was, its name in inputs/, its sha256.
Result<nlohmann::json> keep_records(const std::filesystem::path& share, const Records& records,
                                    mode_t umask_bits);

/// Copies the log of a failed build out of its staging directory, which goes, to where only this user can
/// read it: a directory of the user's own in `directory`. Its new path, empty if that fails, too.
std::filesystem::path save_log(const std::filesystem::path& log, const std::filesystem::path& directory);

/// Removes this user's logs of builds that failed more than a week ago from there.
void sweep_logs(const std::filesystem::path& directory);

/// UTC, in a format of strftime().
std::string utc_now(const char* format);

} // namespace containerize::install
