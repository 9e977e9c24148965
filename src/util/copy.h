// Copies of files.
#pragma once

#include "core/error.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <sys/types.h>

namespace containerize {

/// Copies in large sequential requests and syncs; `progress` gets the bytes done so far. Returns the sha256
/// of the content, in hexadecimal. Fails if `to` exists.
Result<std::string> copy_file_synced(const std::filesystem::path& from, const std::filesystem::path& to,
                                     const std::function<void(std::uint64_t)>& progress = {});

/// The same, but removes `from`. Within a filesystem it is renamed instead of copied, if possible.
Result<std::string> move_file_synced(const std::filesystem::path& from, const std::filesystem::path& to,
                                     const std::function<void(std::uint64_t)>& progress = {});

/// Copies content and permissions, the latter less `umask_bits` and write access for others. Fails if `to`
/// exists.
Status copy_file_with_mode(const std::filesystem::path& from, const std::filesystem::path& to,
                           mode_t umask_bits);

} // namespace containerize
