#include "environments/pip_lock.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/requirement_options.h"
#include "util/json.h"
#include "util/redact.h"
#include "util/user_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace containerize::environments {

namespace {

using nlohmann::json;

/// A line as it was written, because its variables may hold secrets; but a local path expanded.
const std::string& lasting_text(const spec::RequirementLine& line) {
    const bool is_path = line.variables.empty() && line.text.find("://") == line.text.npos;
    return is_path ? line.text : line.written;
}

/// The words of a line of options to keep in the lock; empty if it includes a file or names a project.
std::vector<std::string> lasting_words(const spec::RequirementLine& line, const fs::path& directory) {
    const auto& text = lasting_text(line);
    auto words = text.starts_with('-') ? split_words(text) : std::nullopt;
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
        // Like pip: relative to the file that names it, otherwise to pip's working directory.
        auto& value = (*words)[at];
        const auto path = apart ? value : std::string(spec::attached_value(value));
        for (const auto& base : {line.file.parent_path(), directory})
            if (quiet::exists(base / path)) {
                value.replace(value.size() - path.size(), path.size(),
                              (base / path).lexically_normal().string());
                break;
            }
    }
    return *words;
}

std::string pin(std::string_view name, std::string_view version) {
    return pip::normalised_name(name) + "==" + pip::normalised_version(version);
}

/// References to variables stay: pip and uv expand them again when they read the lock.
std::string without_secrets(const std::string& line) {
    if (has_only_braced_variables(line) && redacted(line) == line) return line;
    return redacted(without_credentials_within(line));
}

/// The "--hash=..." options of a line.
std::set<std::string> hashes_of(const std::string& line) {
    std::set<std::string> hashes;
    for (const auto& word : split_words(line).value_or(std::vector<std::string>()))
        if (word.starts_with("--hash=")) hashes.insert(word);
    return hashes;
}

} // namespace

std::string pin_of(const pip::Distribution& distribution) {
    return pin(distribution.name, distribution.version);
}

Checksums checksums_in_report(std::string_view content) {
    Checksums checksums;
    const auto root = parse_json_quietly(content);
    const auto installed = root.is_object() ? root.find("install") : root.end();
    if (installed == root.end() || !installed->is_array()) return checksums;
    for (const auto& one : *installed) {
        if (!one.is_object() || one.value("is_direct", json()) == true) continue;
        const auto metadata = object_of(one, "metadata");
        const auto sha256 = text_of(
            object_of(object_of(object_of(one, "download_info"), "archive_info"), "hashes"), "sha256");
        if (!sha256.empty())
            checksums[pin(text_of(metadata, "name"), text_of(metadata, "version"))] =
                " --hash=sha256:" + sha256;
    }
    return checksums;
}

Checksums checksums_in_lines(const std::vector<std::string>& lines) {
    Checksums checksums;
    for (const auto& line : lines) {
        const auto words = split_words(line);
        if (!words || words->empty()) continue;
        const auto equals = words->front().find("==");
        std::string hashes;
        for (const auto& hash : hashes_of(line))
            hashes += " " + hash;
        if (equals != std::string::npos && !hashes.empty())
            checksums[pin(words->front().substr(0, equals), words->front().substr(equals + 2))] = hashes;
    }
    return checksums;
}

bool fits_line(const pip::Distribution& installed, const std::string& line, const Checksums& known) {
    const auto expected = requirement_line(installed);
    // Some locks have only the URL of a package.
    const bool fits =
        is_url(line) ? expected.ends_with(" @ " + line) : line.substr(0, line.find(" --hash=")) == expected;
    if (!fits) return false;
    const auto wanted = hashes_of(line);
    if (wanted.empty()) return true;
    const auto found = known.find(pin_of(installed));
    return found != known.end() && std::ranges::includes(wanted, hashes_of(found->second));
}

void lock_requirements(const std::vector<pip::Distribution>& installed, const Checksums& checksums,
                       const std::vector<std::string>& options, spec::LockedEnvironment& locked) {
    std::vector<std::string> lines;
    locked.pip_requested.emplace();
    locked.of_pip.emplace();
    for (const auto& one : installed) {
        const auto known = one.origin ? checksums.end() : checksums.find(pin_of(one));
        // What comes from an index has only a name and a version.
        lines.push_back(one.origin ? without_secrets(requirement_line(one))
                                   : requirement_line(one) + (known == checksums.end() ? "" : known->second));
        if (one.requested) locked.pip_requested->push_back(pip::normalised_name(one.name));
        locked.of_pip->push_back({.name = one.name,
                                  .version = one.version,
                                  .build = {},
                                  .commit = one.origin ? one.origin->commit : "",
                                  .directory = one.origin && one.origin->directory});
    }
    std::ranges::sort(lines);
    std::ranges::sort(*locked.pip_requested);
    locked.pip.clear();
    for (const auto& option : options)
        locked.pip.push_back({.text = without_secrets(option)});
    for (auto& line : lines)
        locked.pip.push_back({.text = std::move(line)});
}

std::vector<std::string> lasting_options(const spec::Requirements& requirements, const fs::path& directory) {
    std::vector<std::string> options;
    for (const auto& line : requirements.lines) {
        std::string option;
        for (const auto& word : lasting_words(line, directory)) // quoted for split_words()
            option += (option.empty() ? "" : " ") + escaped(word, " \t'\"\\#");
        if (!option.empty() && std::ranges::find(options, option) == options.end())
            options.push_back(std::move(option));
    }
    return options;
}

} // namespace containerize::environments
