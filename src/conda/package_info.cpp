#include "conda/package_info.h"

#include "core/text.h"
#include "util/json.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace containerize::conda {

namespace {

using nlohmann::json;

/// The placeholder in packages whose has_prefix has no column for it.
constexpr const char* oldest_placeholder = "/opt/anaconda1anaconda2anaconda3";

std::unexpected<Error> broken(const std::string& package, std::string why) {
    return fail({.what = "the package " + package + " is damaged", .why = std::move(why)});
}

/// Whether it is a normalised relative path that stays below the prefix.
bool is_path(const std::string& path) {
    if (path.empty() || path.front() == '/' || path.size() > 4000 || path.find('\0') != std::string::npos)
        return false;
    return std::ranges::none_of(split(path, '/'), [](std::string_view part) {
        return part.empty() || part == "." || part == ".." || part.size() > 255;
    });
}

std::vector<std::string> lines_of(const std::map<std::string, std::string>& files, const std::string& name) {
    std::vector<std::string> lines;
    const auto found = files.find(name);
    if (found == files.end()) return lines;
    for (auto line : split(found->second, '\n')) {
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.empty()) lines.emplace_back(line);
    }
    return lines;
}

std::string unquoted(std::string text) {
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
        return text.substr(1, text.size() - 2);
    return text;
}

// Each line is "placeholder mode path" or just a path.
Status read_has_prefix(const std::vector<std::string>& lines,
                       std::unordered_map<std::string, PathEntry*>& by_path, const std::string& package) {
    for (const auto& line : lines) {
        std::string path = line;
        std::string placeholder = oldest_placeholder;
        FileMode mode = FileMode::text;
        const auto first = line.find(' ');
        const auto second = first == line.npos ? first : line.find(' ', first + 1);
        if (second != line.npos && !by_path.contains(unquoted(line))) {
            placeholder = unquoted(line.substr(0, first));
            const auto word = line.substr(first + 1, second - first - 1);
            if (word != "text" && word != "binary")
                return broken(package, "info/has_prefix contains the unknown mode '" + word + "'");
            mode = word == "binary" ? FileMode::binary : FileMode::text;
            path = line.substr(second + 1);
        }
        const auto found = by_path.find(unquoted(path));
        if (found == by_path.end()) continue;
        found->second->placeholder = placeholder;
        found->second->mode = mode;
    }
    return {};
}

Status read_paths(const json& root, PackageInfo& info, const std::string& package) {
    if (root.contains("paths_version") && to_integer<int>(root.at("paths_version")) != 1)
        return broken(package, "info/paths.json has an unknown version");
    for (const auto& one : root.at("paths")) {
        PathEntry entry;
        entry.path = one.at("_path").get<std::string>();
        const auto type = one.value("path_type", "hardlink");
        if (type != "hardlink" && type != "softlink" && type != "directory")
            return broken(package, "'" + entry.path + "' has the unknown type '" + type + "'");
        entry.type = type == "softlink"    ? PathType::softlink
                     : type == "directory" ? PathType::directory
                                           : PathType::hardlink;
        entry.sha256 = text_of(one, "sha256");
        if (const auto size = one.find("size_in_bytes"); size != one.end() && size->is_number_unsigned()) {
            entry.size = size->get<std::uint64_t>();
            entry.has_size = true;
        }
        entry.placeholder = text_of(one, "prefix_placeholder");
        if (entry.placeholder.find('\0') != std::string::npos)
            return broken(package, "the prefix of '" + entry.path + "' is not a path");
        entry.mode = one.value("file_mode", "text") == "binary" ? FileMode::binary : FileMode::text;
        entry.no_link = one.value("no_link", false);
        info.paths.push_back(std::move(entry));
    }
    return {};
}

Status read_old_lists(const std::map<std::string, std::string>& files, PackageInfo& info,
                      const std::string& package) {
    for (auto& line : lines_of(files, "files"))
        info.paths.push_back({.path = std::move(line)});
    std::unordered_map<std::string, PathEntry*> by_path;
    for (auto& entry : info.paths)
        by_path.emplace(entry.path, &entry);
    for (const auto& line : lines_of(files, "no_link"))
        if (const auto found = by_path.find(line); found != by_path.end()) found->second->no_link = true;
    return read_has_prefix(lines_of(files, "has_prefix"), by_path, package);
}

bool is_command(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && name.size() < 200 &&
           std::ranges::all_of(name, [](unsigned char c) { return c > 0x20 && c != 0x7F && c != '/'; });
}

bool is_dotted_name(const std::string& name) {
    return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80;
    });
}

// Parses "command = module:function".
Result<EntryPoint> parse_entry_point(const std::string& text, const std::string& package) {
    const auto equals = text.find('=');
    const auto colon = text.find(':', equals == text.npos ? 0 : equals);
    EntryPoint point;
    if (equals != text.npos && colon != text.npos) {
        const std::string_view whole = text;
        point.command = trimmed(whole.substr(0, equals));
        point.module = trimmed(whole.substr(equals + 1, colon - equals - 1));
        point.function = trimmed(whole.substr(colon + 1));
    }
    if (!is_command(point.command) || !is_dotted_name(point.module) || !is_dotted_name(point.function))
        return broken(package,
                      "its entry point '" + text.substr(0, 200) + "' is not COMMAND = MODULE:FUNCTION");
    return point;
}

Status read_link(const json& root, PackageInfo& info, const std::string& package) {
    const auto noarch = root.find("noarch");
    if (noarch == root.end() || !noarch->is_object()) return {};
    const auto points = noarch->find("entry_points");
    if (points == noarch->end() || !points->is_array()) return {};
    for (const auto& one : *points) {
        auto point = TRY(parse_entry_point(one.get<std::string>(), package));
        info.entry_points.push_back(std::move(point));
    }
    return {};
}

} // namespace

Result<PackageInfo> parse_package_info(const std::map<std::string, std::string>& files,
                                       const std::string& package) {
    const auto index = files.find("index.json");
    if (index == files.end()) return broken(package, "it has no info/index.json");
    PackageInfo info;
    std::string_view text = index->second; // the text being parsed
    // The json library throws on wrong types; turn that into errors.
    try {
        auto record = parse_record(parse_json(text));
        if (!record) return broken(package, what_and_why(record.error()));
        info.record = std::move(*record);
        const auto paths = files.find("paths.json");
        if (paths == files.end() && !files.contains("files")) return broken(package, "it has no file list");
        if (paths != files.end()) text = paths->second;
        TRY(paths == files.end() ? read_old_lists(files, info, package)
                                 : read_paths(parse_json(text), info, package));
        if (const auto link = files.find("link.json"); link != files.end()) {
            text = link->second;
            TRY(read_link(parse_json(text), info, package));
        }
    } catch (const json::exception& problem) {
        return broken(package, reason(problem, text));
    }
    std::unordered_set<std::string> seen;
    for (const auto& entry : info.paths) {
        if (!is_path(entry.path))
            return fail(
                {.what = "the package " + package + " is unsafe",
                 .why = "it lists '" + entry.path.substr(0, 200) + "', which is not a path below a prefix"});
        if (!seen.insert(entry.path).second) return broken(package, "it lists '" + entry.path + "' twice");
    }
    return info;
}

} // namespace containerize::conda
