#include "environments/pip_lock.h"

#include "conda/virtual_packages.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "pip/sources.h"
#include "spec/locked_lines.h"
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

spec::PipSource source_of(const pip::Distribution& installed, const IndexFiles& files) {
    if (installed.origin) return pip::source_of(*installed.origin);
    const auto found = files.find(pin_of(installed));
    return found == files.end() ? spec::PipSource() : found->second;
}

/// The "--hash=..." options, after a blank, of a package from an index; empty if there are none.
std::string checksum_of(const pip::Distribution& installed, const KnownOfPip& known) {
    const auto pin = pin_of(installed);
    if (const auto found = known.checksums.find(pin); found != known.checksums.end()) return found->second;
    const auto file = known.files.find(pin);
    const bool has_checksum = file != known.files.end() && !file->second.sha256.empty();
    return has_checksum ? " --hash=sha256:" + file->second.sha256 : "";
}

/// Why a pylock.toml cannot list this package; may be empty.
std::string obstacle_to_locking(const spec::LockedPackage& package) {
    const auto& source = package.source;
    if (source.kind == spec::PipSource::Kind::unknown) return "nothing tells from where it was installed";
    if (source.kind == spec::PipSource::Kind::archive && source.sha256.empty())
        return "its installer did not record a checksum";
    const auto lockable = pip::check_lockable(package);
    return lockable ? "" : lockable.error().why;
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

void add_index_files(const std::vector<pip::ResolvedPackage>& packages, IndexFiles& files) {
    for (const auto& one : packages) {
        if (!one.direct_url.empty()) continue;
        auto source = pip::source_of(one);
        auto& known = files[pin(one.name, one.version)];
        // Of the same file, an earlier lock may tell more or less. A lock must not depend on the installer.
        if (known.sha256.empty() || known.sha256 != source.sha256) known = std::move(source);
    }
}

void add_index_files(const std::vector<spec::LockedPackage>& packages, IndexFiles& files) {
    for (const auto& one : packages)
        if (one.source.kind == spec::PipSource::Kind::index)
            files.emplace(pin(one.name, one.version), one.source);
}

void lock_requirements(const std::vector<pip::Distribution>& installed, const KnownOfPip& known,
                       spec::LockedEnvironment& locked) {
    std::vector<std::string> lines;
    locked.pip_requested.emplace();
    locked.of_pip.emplace();
    for (const auto& one : installed) {
        // What comes from an index has only a name and a version.
        lines.push_back(one.origin ? without_secrets(requirement_line(one))
                                   : requirement_line(one) + checksum_of(one, known));
        if (one.requested) locked.pip_requested->push_back(pip::normalised_name(one.name));
        locked.of_pip->push_back({.name = one.name,
                                  .version = one.version,
                                  .build = {},
                                  .commit = one.origin ? one.origin->commit : "",
                                  .directory = one.origin && one.origin->directory,
                                  .source = source_of(one, known.files)});
    }
    std::ranges::sort(lines);
    std::ranges::sort(*locked.pip_requested);
    locked.pip.clear();
    for (const auto& option : known.options)
        locked.pip.push_back({.text = without_secrets(option)});
    for (auto& line : lines)
        locked.pip.push_back({.text = std::move(line)});
}

pip::Pylock pylock_of(const std::vector<pip::Distribution>& installed, const KnownOfPip& known,
                      const std::vector<std::string>& of_venv) {
    pip::Pylock lock;
    for (const auto& option : known.options)
        lock.options.push_back(without_secrets(option));
    for (const auto& one : installed) {
        spec::LockedPackage package{
            .name = one.name, .version = one.version, .source = source_of(one, known.files)};
        if (std::ranges::find(of_venv, pin_of(one)) != of_venv.end()) {
            lock.of_venv.push_back(pin_of(one));
            continue;
        }
        if (const auto why = obstacle_to_locking(package); !why.empty())
            lock.left_out.push_back(one.name + " " + one.version + ": " + why);
        else
            lock.packages.push_back(std::move(package));
    }
    return lock;
}

Result<prefix::LockFile> lock_file(const pip::Pylock& lock, const BuildContext& context) {
    const auto python = text_of(object_of(context.record, "python"), "version");
    return prefix::LockFile{
        .name = prefix::pylock_name,
        .text = TRY(
            pip::pylock_text(lock, {.python = python, .machine = spec::machine_of(conda::this_subdir())}))};
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
