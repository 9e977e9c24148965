#include "install/pip_report.h"

#include "pip/distributions.h"
#include "spec/requirement_options.h"
#include "spec/text.h"
#include "util/json.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <nlohmann/json.hpp>

namespace containerize::install {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What is below `key`, an empty object if there is nothing.
json part(const json& entry, const char* key) {
    const auto found = entry.is_object() ? entry.find(key) : entry.end();
    return found != entry.end() && found->is_object() ? *found : json::object();
}

std::string text(const json& entry, const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

struct Requirement {
    std::string line;
    std::string hash; ///< " --hash=...", where that belongs into the line of its own
    bool verified = false;
};

/// What came from an address rather than from an index: the same commit, the same archive.
Requirement direct_requirement(const std::string& name, const json& download) {
    const auto vcs = part(download, "vcs_info");
    const auto sha256 = text(part(part(download, "archive_info"), "hashes"), "sha256");
    const auto subdirectory = text(download, "subdirectory");
    std::string url = text(download, "url");
    if (part(download, "dir_info").value("editable", json()) == true)
        return {.line = "-e " + url, .hash = {}, .verified = false};
    // After "name @" pip takes no git+file:///..., which has no host.
    const bool unnamed = !vcs.empty() && url.starts_with("file:");
    if (!vcs.empty()) url = text(vcs, "vcs") + "+" + url + "@" + text(vcs, "commit_id");
    std::string fragment;
    for (const auto& [key, value] : {std::pair("egg", unnamed ? name : ""), std::pair("sha256", sha256),
                                     std::pair("subdirectory", subdirectory)})
        if (!value.empty()) fragment += (fragment.empty() ? "#" : "&") + (std::string(key) + "=" + value);
    return {.line = (unnamed ? "" : name + " @ ") + url + fragment, .hash = {}, .verified = !sha256.empty()};
}

Requirement requirement(const json& installed) {
    const auto metadata = part(installed, "metadata");
    const auto download = part(installed, "download_info");
    const auto name = text(metadata, "name");
    if (installed.value("is_direct", json()) == true) return direct_requirement(name, download);
    const auto sha256 = text(part(part(download, "archive_info"), "hashes"), "sha256");
    return {.line = name + "==" + text(metadata, "version"),
            .hash = sha256.empty() ? "" : " --hash=sha256:" + sha256,
            .verified = !sha256.empty()};
}

/// The words of a line of options alone that last; none if it includes other files or names a project.
std::vector<std::string> lasting_words(const spec::RequirementLine& line, const fs::path& directory) {
    auto words = line.text.starts_with('-') ? spec::split_words(line.text) : std::nullopt;
    if (!words) return {};
    for (std::size_t at = 0; at < words->size(); ++at) {
        auto& word = (*words)[at];
        const auto* option = spec::find_option(word);
        if (option == nullptr) continue;
        if (option->kind != spec::OptionKind::other) return {};
        if (!option->takes_value) continue;
        const bool apart = spec::attached_value(word).empty();
        if (apart && ++at == words->size()) break;
        if (option->name != "--find-links") continue;
        // As pip has it: beside the file that names it, else where pip runs.
        auto& value = (*words)[at];
        const auto path = apart ? value : std::string(spec::attached_value(value));
        std::error_code failed;
        for (const auto& base : {line.file.parent_path(), directory})
            if (fs::exists(base / path, failed)) {
                value.replace(value.size() - path.size(), path.size(),
                              (base / path).lexically_normal().string());
                break;
            }
    }
    return *words;
}

/// A word of a line, as spec::split_words() reads it.
std::string quoted(const std::string& word) {
    std::string result;
    for (const char c : word) {
        if (std::string_view(" \t'\"\\#").find(c) != std::string_view::npos) result += '\\';
        result += c;
    }
    return result;
}

} // namespace

std::optional<PipReport> parse_pip_report(std::string_view content) {
    const auto root = parse_json_quietly(content);
    if (!root.is_object() || !root.contains("install") || !root.at("install").is_array()) return std::nullopt;
    PipReport report;
    std::vector<Requirement> requirements;
    for (const auto& installed : root.at("install")) {
        if (!installed.is_object()) return std::nullopt;
        if (installed.value("requested", json()) == true)
            report.requested.push_back(pip::normalised_name(text(part(installed, "metadata"), "name")));
        requirements.push_back(requirement(installed));
    }
    // pip wants a checksum of all, or of none.
    const bool all_verified = std::ranges::all_of(requirements, &Requirement::verified);
    for (auto& one : requirements)
        report.requirements.push_back(all_verified ? one.line + one.hash : std::move(one.line));
    std::ranges::sort(report.requirements);
    std::ranges::sort(report.requested);
    return report;
}

std::vector<std::string> lasting_options(const spec::Requirements& requirements, const fs::path& directory) {
    std::vector<std::string> options;
    for (const auto& line : requirements.lines) {
        std::string option;
        for (const auto& word : lasting_words(line, directory))
            option += (option.empty() ? "" : " ") + quoted(word);
        if (!option.empty() && std::ranges::find(options, option) == options.end())
            options.push_back(std::move(option));
    }
    return options;
}

} // namespace containerize::install
