// What directories have. Not to be had by std::filesystem's iterators in a loop: where they cannot go on,
// they throw.
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace containerize {

std::vector<std::filesystem::directory_entry> entries_in(const std::filesystem::path& directory,
                                                         std::error_code& failed);

/// At any depth.
std::vector<std::filesystem::directory_entry> entries_below(const std::filesystem::path& directory,
                                                            std::error_code& failed,
                                                            std::filesystem::directory_options options = {});

} // namespace containerize
