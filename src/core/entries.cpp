#include "core/entries.h"

namespace containerize {

namespace fs = std::filesystem;

namespace {

template<class Iterator>
std::vector<fs::directory_entry> all_from(Iterator entry, std::error_code& failed) {
    std::vector<fs::directory_entry> found;
    for (; !failed && entry != Iterator(); entry.increment(failed))
        found.push_back(*entry);
    return found;
}

} // namespace

std::vector<fs::directory_entry> entries_in(const fs::path& directory, std::error_code& failed) {
    return all_from(fs::directory_iterator(directory, failed), failed);
}

std::set<std::string> names_in(const fs::path& directory, std::error_code& failed) {
    std::set<std::string> names;
    for (const auto& entry : entries_in(directory, failed))
        names.insert(entry.path().filename().string());
    return names;
}

std::set<std::string> names_in(const fs::path& directory) {
    std::error_code ignored;
    return names_in(directory, ignored);
}

std::vector<fs::directory_entry> entries_below(const fs::path& directory, std::error_code& failed,
                                               fs::directory_options options) {
    return all_from(fs::recursive_directory_iterator(directory, options, failed), failed);
}

} // namespace containerize
