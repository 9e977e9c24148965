// Entries of directories, with `failed` set if not all could be read. In a loop over std::filesystem's own
// iterators, such a failure is an exception.
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace containerize {

std::vector<std::filesystem::directory_entry> entries_in(const std::filesystem::path& directory,
                                                         std::error_code& failed);

/// The same at any depth.
std::vector<std::filesystem::directory_entry> entries_below(const std::filesystem::path& directory,
                                                            std::error_code& failed,
                                                            std::filesystem::directory_options options = {});

} // namespace containerize
