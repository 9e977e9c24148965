#include "conda/prefix_records.h"

#include <ctime>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::conda {

namespace {

using nlohmann::json;

json path_record(const InstalledPath& installed) {
    json entry = {{"_path", installed.path}};
    if (installed.source == nullptr) {
        const bool byte_code = installed.kind == InstalledPath::Kind::byte_code;
        entry["path_type"] = byte_code ? "pyc_file" : "unix_python_entry_point";
        return entry;
    }
    const auto& source = *installed.source;
    entry["path_type"] = source.type == PathType::softlink    ? "softlink"
                         : source.type == PathType::directory ? "directory"
                                                              : "hardlink";
    if (source.no_link) entry["no_link"] = true;
    if (!source.sha256.empty()) {
        entry["sha256"] = source.sha256;
        entry["sha256_in_prefix"] =
            installed.sha256_in_prefix.empty() ? source.sha256 : installed.sha256_in_prefix;
    }
    if (source.has_size) entry["size_in_bytes"] = source.size;
    if (!source.placeholder.empty()) {
        entry["prefix_placeholder"] = source.placeholder;
        entry["file_mode"] = source.mode == FileMode::binary ? "binary" : "text";
    }
    return entry;
}

/// "https://conda.anaconda.org/conda-forge/linux-64", conda's form.
std::string channel_and_subdir(const PackageRecord& record) {
    return record.channel + (record.channel.empty() || record.subdir.empty() ? "" : "/") + record.subdir;
}

} // namespace

std::string prefix_record(const PackageRecord& record, const std::vector<InstalledPath>& paths,
                          const std::vector<std::string>& requested) {
    json root = to_json(record);
    if (!record.channel.empty()) root["channel"] = channel_and_subdir(record);
    // conda requires these fields, but paths of this machine are of no use elsewhere.
    root["extracted_package_dir"] = "";
    root["package_tarball_full_path"] = "";
    root["link"] = {{"source", ""}, {"type", 1}};
    root["requested_spec"] = requested.empty() ? "" : requested.back(); // older tools read only one
    root["requested_specs"] = requested;
    json files = json::array();
    json path_data = json::array();
    for (const auto& path : paths) {
        if (path.source == nullptr || path.source->type != PathType::directory) files.push_back(path.path);
        path_data.push_back(path_record(path));
    }
    root["files"] = std::move(files);
    root["paths_data"] = {{"paths_version", 1}, {"paths", std::move(path_data)}};
    return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string history_text(const HistoryEntry& entry) {
    const std::time_t when = entry.time;
    std::tm parts{};
    gmtime_r(&when, &parts);
    char date[32];
    const auto size = std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
    std::string text =
        fmt::format("==> {} <==\n# cmd: {}\n# conda version: 24.1.0\n# tool: containerize {}\n",
                    std::string_view(date, size), entry.command_line, entry.tool_version);
    for (const auto& [sign, records] : {std::pair{'-', &entry.removed}, std::pair{'+', &entry.added}})
        for (const auto& record : *records)
            text += sign + channel_and_subdir(record) + "::" + record.distribution() + "\n";
    text += "# update specs: " + json(entry.requested).dump(-1, ' ', false, json::error_handler_t::replace) +
            "\n";
    return text;
}

std::string state(const std::vector<std::pair<std::string, std::string>>& variables) {
    json env = json::object();
    for (const auto& [name, value] : variables)
        env[name] = value;
    return json{{"env_vars", env}}.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace containerize::conda
