// Keeps an installation's inputs, package list, lock file and log for people to read.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include <nlohmann/json.hpp>

namespace containerize::prefix {

/// A file that the user gave, as it was when the build began.
struct Input {
    std::filesystem::path file;
    std::string content;
    mode_t mode = 0;
};

Result<Input> read_input(const std::filesystem::path& file);

// The locks of installations, in their share/.
inline constexpr const char* own_lock_name = "containerize.lock"; ///< with conda packages
inline constexpr const char* pylock_name = "pylock.toml";         ///< with pip packages only

/// A file that reproduces an environment.
struct LockFile {
    std::string name;
    std::string text; ///< empty if there is no such file
};

struct Records {
    std::vector<Input> inputs;
    std::string packages; ///< one per line
    LockFile lock = {};
    std::filesystem::path previous_lock = {}; ///< of the state before; may be missing
    std::filesystem::path log;
};

/// Fills `share`: inputs/ (copies without secrets, see util/redact.h), packages.txt, the lock and build.log.
/// Returns an array for the manifest: each input's path, name in inputs/ and SHA-256.
Result<nlohmann::json> keep_records(const std::filesystem::path& share, const Records& records,
                                    mode_t umask_bits);

/// Copies the log of a failed build out of its staging directory to a private directory of this user in
/// `directory`. Returns the new path, empty on failure.
std::filesystem::path save_log(const std::filesystem::path& log, const std::filesystem::path& directory);

/// Removes this user's logs in `directory` that are older than a week.
void sweep_logs(const std::filesystem::path& directory);

/// The current time in UTC, formatted by strftime().
std::string utc_now(const char* format);

} // namespace containerize::prefix
