#include "inputs/secrets.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "pip/pip_configuration.h"
#include "util/base64.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/redact.h"
#include "util/user_text.h"

#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace containerize::inputs {

namespace {

/// Configuration files are smaller than this.
constexpr std::uint64_t largest_file = 1U << 20U;
/// Logs of a clone grow with each fetch.
constexpr std::uint64_t largest_file_of_git = 16U << 20U;

void remember_file(const fs::path& file, void (*remember)(std::string_view) = remember_secrets_in) {
    if (!quiet::is_regular_file(file)) return;
    if (const auto text = read_file(file, largest_file)) remember(*text);
}

/// Updates the size and checksum of another metadata file in RECORD.
Status correct_record(const fs::path& metadata, const std::string& name, std::string_view content) {
    const auto file = metadata / "RECORD";
    auto record = read_file(file);
    if (!record) return {}; // without a RECORD there is nothing to update
    const auto start = metadata.filename().string() + "/" + name + ",";
    auto at = record->find(start);
    if (at != 0) at = record->find("\n" + start);
    if (at == std::string::npos) return {};
    if (at != 0) ++at;
    const auto end = std::min(record->find_first_of("\r\n", at), record->size());
    std::string bytes;
    const auto digest = sha256(content);
    for (std::size_t i = 0; i + 1 < digest.size(); i += 2)
        bytes += static_cast<char>(std::stoi(digest.substr(i, 2), nullptr, 16));
    auto encoded = base64(bytes);
    replace_all(encoded, "+", "-");
    replace_all(encoded, "/", "_");
    encoded.resize(encoded.find('='));
    record->replace(at, end - at, start + "sha256=" + encoded + "," + std::to_string(content.size()));
    return write_file(file, *record);
}

/// Cleans direct_url.json (PEP 610), which records the origin of a package that did not come from an index.
Status clean_direct_url(const fs::path& metadata) {
    const auto file = metadata / "direct_url.json";
    std::error_code ignored;
    if (!fs::is_regular_file(fs::symlink_status(file, ignored))) return {};
    auto text = read_file(file, largest_file);
    auto object = nlohmann::json::parse(text ? *text : std::string(), nullptr, false);
    if (!object.is_object() || !object.contains("url") || !object["url"].is_string()) return {};
    const auto url = object["url"].get<std::string>();
    if (redacted(url) == url) return {};
    object["url"] = redacted(without_credentials_within(url));
    const auto cleaned = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    TRY(write_file(file, cleaned));
    return correct_record(metadata, "direct_url.json", cleaned);
}

/// Whether git keeps a clone here: that of a working tree, of a submodule, or a bare one.
bool is_directory_of_git(const fs::path& path) {
    return path.filename() == ".git" || (quiet::is_directory(path / "objects") &&
                                         quiet::is_directory(path / "refs") && quiet::exists(path / "HEAD"));
}

bool is_configuration(const fs::path& file) {
    return file.filename() == "config" || file.filename() == "config.worktree";
}

/// Whether git writes addresses into this file of a clone's directory, and can do without it.
bool is_history(const fs::path& file, const fs::path& git) {
    return file.filename() == "FETCH_HEAD" ||
           file.native().find("/logs/", git.native().size()) != std::string::npos;
}

/// A line of a clone's file; empty for a setting that consists of a secret, such as `extraheader`: git would
/// send the redaction mark literally.
std::string clean_line(std::string_view line) {
    const auto bare = without_credentials_within(line);
    auto clean = redacted(bare);
    const bool is_address = bare.find("://") != bare.npos;
    return clean == bare || is_address ? clean + "\n" : "";
}

/// Removes a file of a clone that cannot be searched for secrets.
Status remove_unread(const fs::path& file) {
    if (unlink(file.c_str()) != 0) return fail_errno("cannot remove the file", file.string());
    log::detail("removed " + file.string() + ": it may contain logins, and is too large to be searched");
    return {};
}

/// Cleans a file of a clone.
Status clean_file_of_git(const fs::path& file, bool is_needed) {
    std::error_code ignored;
    if (!fs::is_regular_file(fs::symlink_status(file, ignored))) return {};
    const auto text = read_file(file, largest_file_of_git);
    if (!text && is_needed) return fail(text.error());
    if (!text) return remove_unread(file);
    if (redacted(*text) == *text) return {};
    std::string cleaned;
    for (const auto line : split_lines(*text))
        cleaned += clean_line(line);
    return write_file(file, cleaned);
}

/// Calls `visit` for all that is in the tree. Skips unreadable directories, which do not get into the image
/// either.
template<class Visit>
Status each_below(const fs::path& root, const Visit& visit) {
    std::error_code failed;
    for (const auto& entry : entries_below(root, failed, fs::directory_options::skip_permission_denied))
        TRY(visit(entry));
    if (failed) return fail_errno("cannot read the directory", root.string(), failed.value());
    return {};
}

/// Cleans what is in a clone's directory, also of its submodules and other working trees.
Status clean_clone(const fs::path& git) {
    return each_below(git, [&](const fs::directory_entry& entry) -> Status {
        const auto& file = entry.path();
        const bool is_needed = is_configuration(file);
        return is_needed || is_history(file, git) ? clean_file_of_git(file, is_needed) : Status();
    });
}

/// Searches all that was written: pip clones to PIP_SRC, and users' commands anywhere.
Status clean_clones(const fs::path& root, const fs::path& written) {
    return each_below(written, [&](const fs::directory_entry& entry) -> Status {
        std::error_code ignored;
        if (!entry.is_directory(ignored) || entry.is_symlink(ignored)) return {};
        const auto directory = root / entry.path().lexically_relative(written);
        return is_directory_of_git(directory) ? clean_clone(directory) : Status();
    });
}

/// Fails if the directory exists but cannot be listed, since its entries may hold secrets.
Result<std::vector<fs::directory_entry>> entries_where_there_are_some(const fs::path& directory) {
    std::error_code failed;
    auto entries = entries_in(directory, failed);
    if (failed && failed != std::errc::no_such_file_or_directory)
        return fail_errno("cannot read the directory", directory.string(), failed.value());
    return entries;
}

} // namespace

void remember_configured_secrets(const Environment& environment) {
    for (const auto& file : pip::configuration_files(environment))
        remember_file(file);
    remember_file("/etc/gitconfig");
    if (const auto file = variable(environment, "GIT_CONFIG_GLOBAL"); !file.empty()) remember_file(file);
    if (const auto netrc = variable(environment, "NETRC"); !netrc.empty())
        remember_file(netrc, remember_secrets_of_netrc);
    const fs::path home = variable(environment, "HOME");
    if (!home.is_absolute()) return;
    remember_file(home / ".netrc", remember_secrets_of_netrc);
    const fs::path given = variable(environment, "XDG_CONFIG_HOME");
    for (const auto& configuration : {home / ".config", given})
        for (const char* file : {"git/config", "git/credentials"})
            if (configuration.is_absolute()) remember_file(configuration / file);
    for (const char* file : {".gitconfig", ".git-credentials"})
        remember_file(home / file);
}

void remember_secrets_of(const Inputs& inputs) {
    for (const auto& input : inputs.kept) {
        const auto text = decode(input.content, input.file);
        const auto& readable = text ? *text : input.content;
        remember_secrets_in(readable);
        remember_secrets_in(without_escapes(readable));
    }
}

Status remove_secrets_of_packages(const fs::path& root, const fs::path& written,
                                  const std::string& python_name) {
    const auto site_packages = root / "lib" / python_name / "site-packages";
    auto installed = TRY(entries_where_there_are_some(site_packages));
    for (const auto& entry : installed)
        if (entry.path().extension() == ".dist-info") TRY(clean_direct_url(entry.path()));
    return clean_clones(root, written);
}

} // namespace containerize::inputs
