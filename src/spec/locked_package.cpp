#include "spec/locked_package.h"

#include "core/text.h"
#include "core/url.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

/// The file: URL for a path relative to the lock.
Result<std::string> local_url(const std::string& path, const fs::path& lock, const std::string& where) {
    const auto full = fs::absolute(lock.parent_path() / path).lexically_normal();
    std::error_code failed;
    if (!fs::exists(full, failed))
        return fail_input(
            "there is no file or directory '" + path + "'", {}, where,
            "Paths are relative to the lock file. Put the lock file beside the files that it refers to.");
    return file_url(full.string());
}

bool is_commit(std::string_view text) {
    return is_hex(text, 40) || is_hex(text, 64);
}

/// The value in "key=value"; nothing if the key is another one.
std::optional<std::string> value_of(std::string_view part, std::string_view key) {
    if (!part.starts_with(key) || part.substr(key.size(), 1) != "=") return std::nullopt;
    return url_decoded(part.substr(key.size() + 1));
}

Result<std::string> git_requirement(const GitSource& source, const LockedRequirement& package,
                                    const std::string& where) {
    if (source.commit.empty())
        return fail_input("the lock has no commit for '" + package.name + "'",
                          "a branch or tag can change later: " + without_credentials_within(package.location),
                          where, "Lock it again.");
    constexpr auto known = std::to_array<std::string_view>({"https", "http", "ssh", "git", "file"});
    if (!is_url(source.url) ||
        std::ranges::find(known, source.url.substr(0, source.url.find(':'))) == known.end())
        return fail_input("unsupported address of a git repository", without_credentials_within(source.url),
                          where, "Lock the package from an address that begins with https:// or ssh://.");
    // pip rejects "name @ git+file:///...", whose URL has no host.
    const bool named = !package.name.empty() && !source.url.starts_with("file:");
    std::string fragment;
    if (!named && !package.name.empty()) fragment = "#egg=" + package.name;
    if (!source.subdirectory.empty())
        fragment += (fragment.empty() ? "#" : "&") + ("subdirectory=" + url_encoded(source.subdirectory));
    // pip looks for the commit at the end of the path.
    const auto url = without_marker(source.url);
    const auto query = std::min(url.find('?'), url.size());
    return (named ? package.name + " @ " : "") + "git+" + url.substr(0, query) + "@" + source.commit +
           url.substr(query) + fragment;
}

/// What pip takes for a checksum, after '#' or '&'.
constexpr auto checksums_of_pip =
    std::to_array<std::string_view>({"md5=", "sha1=", "sha224=", "sha256=", "sha384=", "sha512="});

bool is_checksum(std::string_view part) {
    return std::ranges::any_of(checksums_of_pip,
                               [part](std::string_view kind) { return part.starts_with(kind); });
}

/// Some versions of pip would take such a checksum instead of the one in the fragment.
bool has_checksum_in_query(std::string_view url) {
    const auto parts = split(url.substr(0, url.find('#')), '&');
    return std::any_of(parts.begin() + 1, parts.end(), is_checksum);
}

/// The digits of the sha256 checksum in the URL's fragment; empty if there is none.
std::string sha256_in(std::string_view url) {
    constexpr std::string_view key = "sha256=";
    const auto fragment = url.find('#');
    if (fragment == url.npos) return {};
    for (const auto part : split(url.substr(fragment + 1), '&'))
        if (part.starts_with(key) && is_hex(part.substr(key.size()), 64))
            return std::string(part.substr(key.size()));
    return {};
}

/// The URL with this checksum instead of those in its fragment, of which the rest stays.
std::string with_checksum(std::string_view url, std::string_view sha256) {
    const auto end = url.find('#');
    // In lower case: some versions of pip ignore others, and would verify nothing.
    std::string result = std::string(url.substr(0, end)) + "#sha256=" + lower(sha256);
    if (end == url.npos) return result;
    for (const auto part : split(url.substr(end + 1), '&'))
        if (!part.empty() && !is_checksum(part)) result += "&" + std::string(part);
    return result;
}

struct Requirement {
    std::string text;
    LockedPackage expected;
};

/// A requirement line that pip accepts and verifies. A package from a URL or path must come from there: one
/// of the same name on PyPI may be something else.
Result<Requirement> requirement(const LockedRequirement& package, const fs::path& lock,
                                const std::string& where) {
    Requirement result;
    result.expected.name = package.name;
    result.expected.version = package.version;
    if (package.location.empty()) {
        if (package.version.empty())
            return fail_input("the lock has neither a version nor a URL or path for '" + package.name + "'",
                              {}, where, "Lock it again.");
        if (package.sha256.empty()) return refuse_unverifiable(package.name, where);
        result.text = package.name + "==" + package.version + " --hash=sha256:" + package.sha256;
        return result;
    }
    if (const auto git = parse_git_source(package.location)) {
        result.text = TRY(git_requirement(*git, package, where));
        result.expected.commit = git->commit;
        result.expected.url = git->url;
        return result;
    }
    std::string url = package.location;
    constexpr std::string_view direct = "direct+"; // in version 4 of pixi's format
    if (url.starts_with(direct)) url.erase(0, direct.size());
    if (const auto kind = url.substr(0, url.find("://")); is_url(url) && kind.find('+') != kind.npos)
        return fail_input("unsupported kind of repository", without_credentials_within(url), where,
                          "Lock the package from git or from an index.");
    if (!is_url(url)) url = TRY(local_url(url, lock, where));
    url = without_marker(url);
    const auto sha256 = package.sha256.empty() ? sha256_in(url) : package.sha256;
    if (sha256.empty() && !url.starts_with("file:")) return refuse_unverifiable(package.name, where);
    if (has_checksum_in_query(url))
        return fail_input("the URL of '" + package.name + "' has a checksum in its query",
                          "pip would take it for the checksum of the file", where,
                          "Lock the package from another address.");
    result.expected.url = url;
    std::error_code failed;
    result.expected.directory = fs::is_directory(file_url_path(url), failed);
    if (package.editable) {
        result.text = "-e " + url;
        return result;
    }
    // For a directory, the lock's checksum covers something else.
    if (!sha256.empty() && !result.expected.directory) url = with_checksum(url, sha256);
    result.text = package.name.empty() ? url : package.name + " @ " + url;
    return result;
}

} // namespace

std::unexpected<Error> refuse_unverifiable(const std::string& name, const std::string& where) {
    return fail_input("the lock has no checksum for '" + name + "'", "its download cannot be verified", where,
                      "Lock it again from an index or channel that has checksums.");
}

void set_address(conda::PackageRecord& record, const std::string& url, const std::string& channel) {
    record.url = without_credentials(url);
    if (record.url != url) record.download_url = url;
    record.channel = without_credentials(channel);
}

Result<conda::PackageRecord> record_of_url(const std::string& text, const fs::path& file,
                                           const std::string& where) {
    auto parsed = conda::parse_match_spec(text);
    if (!parsed) parsed.error().where = where;
    auto spec = TRY(std::move(parsed));
    if (spec.url.empty())
        return fail_input("this is not a package URL", spec.text.substr(0, 200), where,
                          "Package URLs end in .conda or .tar.bz2.");
    conda::PackageRecord record;
    record.of_list = true;
    const auto parts = conda::parse_file_name(spec.file_name);
    record.name = parts->name;
    record.version = parts->version;
    record.build = parts->build;
    record.file_name = spec.file_name;
    record.subdir = spec.subdir;
    record.md5 = spec.md5;
    record.sha256 = spec.sha256;
    // Paths are relative to the list.
    std::string url = spec.url;
    if (url.find("://") == std::string::npos)
        url = "file://" + fs::absolute(file.parent_path() / url).lexically_normal().string();
    set_address(record, url, spec.channel);
    return record;
}

std::string without_marker(const std::string& url) {
    auto result = url_encoded(url);
    replace_all(result, ";", "%3B");
    return result;
}

std::optional<GitSource> parse_git_source(std::string_view text) {
    constexpr std::string_view scheme = "git+";
    if (!text.starts_with(scheme)) return std::nullopt;
    text.remove_prefix(scheme.size());
    GitSource source;
    const auto hash = text.find('#');
    const auto fragment = hash == text.npos ? std::string_view() : text.substr(hash + 1);
    text = text.substr(0, hash);
    const auto question = text.find('?');
    const auto query = question == text.npos ? std::string_view() : text.substr(question + 1);
    text = text.substr(0, question);
    // The last '@' starts a revision unless a '/' follows; then it belongs to a user name.
    const auto at = text.rfind('@');
    if (at != text.npos && text.find('/', at) == text.npos) {
        if (is_commit(text.substr(at + 1))) source.commit = text.substr(at + 1);
        text = text.substr(0, at);
    }
    source.url = text;
    std::string server_query;
    for (const auto part : split(query, '&')) {
        if (part.empty()) continue;
        if (auto directory = value_of(part, "subdirectory"))
            source.subdirectory = std::move(*directory);
        else if (const auto revision = value_of(part, "rev"))
            source.commit = is_commit(*revision) ? *revision : source.commit;
        else if (!value_of(part, "branch") && !value_of(part, "tag") && !value_of(part, "lfs"))
            server_query += (server_query.empty() ? "?" : "&") + std::string(part);
    }
    source.url += server_query;
    for (const auto part : split(fragment, '&')) {
        if (auto directory = value_of(part, "subdirectory")) source.subdirectory = std::move(*directory);
        if (is_commit(part)) source.commit = part;
    }
    return source;
}

Result<std::string> requirement_text(const LockedRequirement& package, const fs::path& lock,
                                     const std::string& where) {
    auto made = TRY(requirement(package, lock, where));
    return std::move(made.text);
}

Status add_requirement(const LockedRequirement& package, const fs::path& lock, const std::string& where,
                       LockedEnvironment& locked) {
    auto made = TRY(requirement(package, lock, where));
    locked.pip.push_back({.text = std::move(made.text), .where = where});
    if (locked.of_pip) locked.of_pip->push_back(std::move(made.expected));
    return {};
}

void add_conda_package(conda::PackageRecord record, LockedPackage expected, LockedEnvironment& locked) {
    if (expected.name.empty()) expected.name = record.name;
    if (expected.version.empty()) expected.version = record.version;
    if (expected.build.empty()) expected.build = record.build;
    locked.of_conda.push_back(std::move(expected));
    locked.packages.push_back(std::move(record));
}

std::string scalar(const YAML::Node& node, const char* key) {
    const auto value = node[key];
    return value.IsDefined() && value.IsScalar() ? value.Scalar() : std::string();
}

Error of_lock(Error error, const std::string& kind) {
    error.what = "this " + kind + " cannot be read: " + error.what;
    return error;
}

std::string missing_key(const YAML::Node& root, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
        if (!root.IsMap() || !root[key].IsDefined()) return key;
    return {};
}

std::unexpected<Error> refuse_platform(const fs::path& file, const std::string& subdir,
                                       const std::set<std::string>& platforms) {
    return fail_input(
        "this lock file has no package for " + subdir,
        platforms.empty() || platforms.contains(subdir) ? "" : "it is for " + joined(platforms, ", "),
        file.string(), "Lock the environment again for that platform.");
}

std::unexpected<Error> refuse_incomplete(const fs::path& file, const std::string& kind,
                                         const std::string& key) {
    return fail_input("this " + kind + " is incomplete", "it has no `" + key + ":`", file.string(),
                      "Copy or create it again.");
}

std::vector<std::string> dependency_list(const YAML::Node& node) {
    std::vector<std::string> list;
    if (!node.IsDefined()) return list;
    if (node.IsSequence())
        for (const auto& one : node)
            if (one.IsScalar()) list.push_back(one.Scalar());
    if (node.IsMap()) // conda-lock: name -> condition
        for (const auto& one : node)
            if (one.first.IsScalar() && one.second.IsScalar())
                list.push_back(one.first.Scalar() + (one.second.Scalar().empty() || one.second.Scalar() == "*"
                                                         ? ""
                                                         : " " + one.second.Scalar()));
    return list;
}

} // namespace containerize::spec
