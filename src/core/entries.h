// Entries of directories, with `failed` set if not all could be read. In a loop over std::filesystem's own
// iterators, such a failure is an exception.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace containerize {

std::vector<std::filesystem::directory_entry> entries_in(const std::filesystem::path& directory,
                                                         std::error_code& failed);

/// Their names, sorted by their bytes.
std::set<std::string> names_in(const std::filesystem::path& directory, std::error_code& failed);
/// The same; none if they cannot be read.
std::set<std::string> names_in(const std::filesystem::path& directory);

/// Entries at any depth.
std::vector<std::filesystem::directory_entry> entries_below(const std::filesystem::path& directory,
                                                            std::error_code& failed,
                                                            std::filesystem::directory_options options = {});

} // namespace containerize
