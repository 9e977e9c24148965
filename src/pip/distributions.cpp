#include "pip/distributions.h"

#include "util/entries.h"
#include "util/filesystem.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace containerize::pip {

namespace {

/// The file in which an entry of site-packages describes a distribution; empty if it is none.
fs::path metadata_file(const fs::path& entry) {
    const auto extension = entry.extension();
    std::error_code failed;
    if (extension == ".dist-info") return entry / "METADATA";
    if (extension == ".egg-info") return fs::is_directory(entry, failed) ? entry / "PKG-INFO" : entry;
    return {};
}

// Headers as in mail, up to an empty line.
Distribution parse_metadata(const std::string& text) {
    Distribution distribution;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line) && !line.empty() && line != "\r";) {
        const auto value = [&line](std::string_view key) {
            auto rest = line.substr(key.size());
            rest.erase(0, rest.find_first_not_of(' '));
            rest.erase(rest.find_last_not_of(" \r") + 1);
            return rest;
        };
        if (distribution.name.empty() && line.starts_with("Name:")) distribution.name = value("Name:");
        if (distribution.version.empty() && line.starts_with("Version:"))
            distribution.version = value("Version:");
    }
    return distribution;
}

} // namespace

std::vector<Distribution> read_distributions(const fs::path& site_packages) {
    std::vector<Distribution> distributions;
    std::error_code missing;
    for (const auto& entry : entries_in(site_packages, missing)) {
        const auto file = metadata_file(entry.path());
        if (file.empty()) continue;
        const auto text = read_file(file);
        if (!text) continue;
        auto distribution = parse_metadata(*text);
        if (distribution.name.empty() || distribution.version.empty()) continue;
        distribution.metadata = file.lexically_relative(site_packages).string();
        std::error_code failed;
        distribution.requested = fs::exists(file.parent_path() / "REQUESTED", failed);
        distributions.push_back(std::move(distribution));
    }
    std::ranges::sort(distributions, {}, [](const auto& one) { return normalised_name(one.name); });
    return distributions;
}

std::string normalised_name(std::string_view name) {
    std::string result;
    for (const char c : name) {
        const bool separates = c == '-' || c == '_' || c == '.';
        if (separates && result.ends_with('-')) continue;
        result += separates ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return result;
}

} // namespace containerize::pip
