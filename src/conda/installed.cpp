#include "conda/installed.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "util/json.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace containerize::conda {

namespace {

using nlohmann::json;

std::unexpected<Error> damaged(const fs::path& file, std::string why) {
    return fail({.what = "a record in conda-meta is damaged",
                 .why = std::move(why),
                 .where = file.string(),
                 .hint = "Build the environment again with `containerize new --force`."});
}

// conda stores the channel with the subdir: "https://conda.anaconda.org/conda-forge/linux-64".
std::string channel_of(const json& entry, const PackageRecord& record) {
    auto channel = entry.value("channel", "");
    if (!record.subdir.empty() && channel.ends_with("/" + record.subdir))
        channel.resize(channel.size() - record.subdir.size() - 1);
    return channel;
}

std::vector<std::string> requests_of(const json& entry) {
    if (auto requested = entry.value("requested_specs", std::vector<std::string>()); !requested.empty())
        return requested;
    if (auto requested = entry.value("requested_spec", ""); !requested.empty() && requested != "None")
        return {std::move(requested)};
    return {};
}

Result<InstalledPackage> read_record(const fs::path& file) {
    auto text = TRY(read_file(file, 256U << 20U));
    try {
        const auto entry = parse_json(text);
        auto record = parse_record(entry);
        if (!record) return damaged(file, record.error().what);
        InstalledPackage installed{
            .record = std::move(*record), .requested = requests_of(entry), .record_file = file};
        installed.record.url = entry.value("url", "");
        installed.record.file_name = entry.value("fn", "");
        installed.record.channel = channel_of(entry, installed.record);
        for (const auto& path : entry.value("files", json::array())) {
            installed.files.push_back(path.get<std::string>());
            if (!stays_below(installed.files.back()))
                return damaged(file, "'" + installed.files.back() + "' is not below the prefix");
        }
        return installed;
    } catch (const json::exception& problem) {
        return damaged(file, reason(problem, text));
    }
}

} // namespace

Result<std::vector<Located>> read_pinned(const fs::path& prefix) {
    const auto file = prefix / "conda-meta/pinned";
    std::vector<Located> pinned;
    std::error_code ignored;
    if (!fs::exists(file, ignored)) return pinned;
    auto text = TRY(read_file(file, 1U << 20U));
    std::size_t number = 0;
    for (const auto line : split(text, '\n')) {
        ++number;
        if (const auto spec = trimmed(line); !spec.empty() && !spec.starts_with('#'))
            pinned.push_back({std::string(spec), "conda-meta/pinned:" + std::to_string(number)});
    }
    return pinned;
}

Result<std::vector<InstalledPackage>> read_installed(const fs::path& prefix) {
    std::vector<InstalledPackage> packages;
    std::error_code missing;
    for (const auto& entry : entries_in(prefix / "conda-meta", missing)) {
        if (entry.path().extension() != ".json") continue;
        auto package = TRY(read_record(entry.path()));
        packages.push_back(std::move(package));
    }
    std::ranges::sort(packages, {}, [](const auto& package) { return package.record.name; });
    return packages;
}

} // namespace containerize::conda
