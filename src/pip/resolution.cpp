#include "pip/resolution.h"

#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "util/json.h"
#include "util/redact.h"
#include "util/toml.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace containerize::pip {

namespace {

using nlohmann::json;
using Kind = ResolvedPackage::Kind;

bool is_wheel(std::string_view url) {
    return file_name_in(url).ends_with(".whl");
}

/// Before mark_for_build(), which removes some of what it checks.
Status check(const ResolvedPackage& package) {
    const bool is_name = !package.name.empty() && std::ranges::all_of(package.name, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
    });
    std::string why;
    if (!is_name)
        why = "its name is invalid";
    else if (!is_one_word(package.version))
        why = "its version is invalid";
    else if (!is_one_word(package.url) || package.url.find("://") == std::string::npos)
        why = "its URL is invalid";
    else if (!package.sha256.empty() && !is_hex(package.sha256, 64))
        why = "its checksum is invalid";
    if (why.empty()) return {};
    return fail({.what = "cannot use this package", .why = why, .where = printable(package.name)});
}

bool permits(const Permitted& permitted, const std::string& package, const std::string& sha256) {
    const auto found = permitted.find(normalised_name(package));
    return found == permitted.end() || found->second.contains(sha256);
}

/// pip and uv have compared them while they resolved, but what will be downloaded is what they tell here.
Status check_permitted(const ResolvedPackage& package, const Permitted& permitted) {
    if (package.sha256.empty() || permits(permitted, package.name, package.sha256)) return {};
    return fail({.what = "the checksum of this package differs from that in the requirements",
                 .why = "it is sha256:" + package.sha256,
                 .where = package.name,
                 .hint = "Correct the requirements, unless somebody may have changed the package."});
}

/// What prevents fetching the package; may be empty.
std::string obstacle_of(const ResolvedPackage& package) {
    const bool is_unverified = package.kind == Kind::wheel && package.sha256.empty();
    return is_unverified ? "the index has no SHA-256 checksum for " + package.name : "";
}

void add(ResolvedPackage package, Resolution& resolution) {
    if (resolution.obstacle.empty()) resolution.obstacle = obstacle_of(package);
    resolution.packages.push_back(std::move(package));
}

void sort(Resolution& resolution) {
    std::ranges::sort(resolution.packages, {},
                      [](const ResolvedPackage& one) { return normalised_name(one.name); });
}

/// What must be built has no wheel yet.
void mark_for_build(ResolvedPackage& package, std::optional<Origin> origin) {
    const bool is_archive = !origin || (origin->vcs.empty() && !origin->directory);
    package.kind = Kind::needs_build;
    package.source = origin ? std::move(*origin) : Origin{.url = package.url};
    if (is_archive) package.source.sha256 = package.sha256;
    package.url.clear();
    package.sha256.clear();
    package.size = 0;
}

Status add_reported(const json& entry, const Permitted& permitted, Resolution& resolution) {
    const auto metadata = object_of(entry, "metadata");
    const auto info = object_of(entry, "download_info");
    const auto archive = object_of(info, "archive_info");
    ResolvedPackage package{.name = text_of(metadata, "name"), .version = text_of(metadata, "version")};
    package.url = text_of(info, "url");
    package.requested = entry.value("requested", json()) == true;
    package.sha256 = lower(text_of(object_of(archive, "hashes"), "sha256"));
    // pip before 23.1 writes only this for some archives.
    constexpr std::string_view older = "sha256=";
    if (const auto hash = text_of(archive, "hash"); package.sha256.empty() && hash.starts_with(older))
        package.sha256 = lower(hash.substr(older.size()));
    std::optional<Origin> origin;
    if (entry.value("is_direct", json()) == true) {
        package.direct_url = info.dump(-1, ' ', false, json::error_handler_t::replace);
        origin = parse_origin(package.direct_url);
        if (origin && origin->editable && resolution.obstacle.empty())
            resolution.obstacle = package.name + " is editable";
    }
    TRY(check(package));
    TRY(check_permitted(package, permitted));
    const bool is_archive = info.contains("archive_info");
    if (!is_archive || !is_wheel(package.url)) mark_for_build(package, std::move(origin));
    add(std::move(package), resolution);
    return {};
}

// A pylock.toml (PEP 751), as far as uv writes it.

std::string text_in(const toml::table& table, std::string_view key) {
    return table[key].value_or(std::string());
}

std::string sha256_in(const toml::table& archive) {
    return lower(archive["hashes"]["sha256"].value_or(std::string()));
}

/// Of an entry with `url`, or `path`.
std::string url_in(const toml::table& entry, const std::filesystem::path& directory) {
    if (auto url = text_in(entry, "url"); !url.empty()) {
        if (!url.starts_with("file:")) return url;
        return file_url(file_url_path(url)); // uv leaves characters unencoded that pip encodes
    }
    const auto path = text_in(entry, "path");
    return path.empty() ? "" : file_url((directory / path).lexically_normal().string());
}

std::uint64_t size_in(const toml::table& entry) {
    const auto size = entry["size"].value_or(std::int64_t{0});
    return size > 0 ? static_cast<std::uint64_t>(size) : 0;
}

class LockReader {
public:
    explicit LockReader(const LockedByUv& lock) : lock_(lock) {
        for (const auto& one : lock.planned)
            missing_.insert(normalised_name(one.name));
    }

    Result<Resolution> read(const toml::table& root) {
        if (const auto* packages = root["packages"].as_array())
            for (const auto& entry : *packages)
                if (const auto* table = entry.as_table()) TRY(read_package(*table));
        if (!missing_.empty())
            return fail({.what = "uv does not tell where these packages come from",
                         .why = joined(missing_, ", "),
                         .hint = "Use --installer pip."});
        sort(resolution_);
        return std::move(resolution_);
    }

private:
    Status read_package(const toml::table& table) {
        ResolvedPackage package{.name = text_in(table, "name"), .version = text_in(table, "version")};
        const auto name = normalised_name(package.name);
        // What is installed already, and is not replaced, is not planned.
        if (missing_.erase(name) == 0) return {};
        package.requested = lock_.requested.contains(name);
        if (const auto* archive = table["archive"].as_table()) return add_archive(package, *archive);
        if (const auto* project = table["directory"].as_table())
            return add_source(package, *project, {{"dir_info", json::object()}});
        if (const auto* repository = table["vcs"].as_table()) return add_repository(package, *repository);
        return add_from_index(package, table);
    }

    Status add_archive(ResolvedPackage& package, const toml::table& archive) {
        package.sha256 = sha256_in(archive);
        json info = json::object();
        if (!package.sha256.empty())
            info = {{"hash", "sha256=" + package.sha256}, {"hashes", {{"sha256", package.sha256}}}};
        return add_source(package, archive, {{"archive_info", std::move(info)}});
    }

    Status add_repository(ResolvedPackage& package, const toml::table& repository) {
        json info = {{"vcs", text_in(repository, "type")}, {"commit_id", text_in(repository, "commit-id")}};
        if (const auto revision = text_in(repository, "requested-revision"); !revision.empty())
            info["requested_revision"] = revision;
        return add_source(package, repository, {{"vcs_info", std::move(info)}});
    }

    /// Adds a package that has a URL. `direct` is what direct_url.json says about it.
    Status add_source(ResolvedPackage& package, const toml::table& source, json direct) {
        package.url = url_in(source, lock_.directory);
        package.size = size_in(source);
        package.requested = true; // dependencies hardly ever have URLs
        direct["url"] = package.url;
        if (const auto below = text_in(source, "subdirectory"); !below.empty())
            direct["subdirectory"] = below;
        package.direct_url = direct.dump(-1, ' ', false, json::error_handler_t::replace);
        TRY(check(package));
        TRY(check_permitted(package, lock_.permitted));
        if (!direct.contains("archive_info") || !is_wheel(package.url))
            mark_for_build(package, parse_origin(package.direct_url));
        add(std::move(package), resolution_);
        return {};
    }

    Status add_from_index(ResolvedPackage& package, const toml::table& table) {
        const auto* wheels = table["wheels"].as_array();
        const auto* file = wheels != nullptr ? best_of(package, *wheels) : nullptr;
        const bool is_built = file == nullptr;
        if (is_built) file = table["sdist"].as_table();
        if (file == nullptr)
            return fail({.what = "uv names no file of this package that the environment's Python can use",
                         .where = printable(package.name),
                         .hint = "Use --installer pip."});
        package.url = url_in(*file, lock_.directory);
        package.sha256 = sha256_in(*file);
        package.size = size_in(*file);
        TRY(check(package));
        TRY(check_permitted(package, lock_.permitted));
        if (is_built) mark_for_build(package, std::nullopt);
        add(std::move(package), resolution_);
        return {};
    }

    const toml::table* best_of(const ResolvedPackage& package, const toml::array& wheels) const {
        const toml::table* best = nullptr;
        std::optional<WheelRank> highest;
        for (const auto& entry : wheels) {
            const auto* wheel = entry.as_table();
            if (wheel == nullptr || !permits(lock_.permitted, package.name, sha256_in(*wheel))) continue;
            auto rank = lock_.tags.rank(file_name_in(url_in(*wheel, lock_.directory)));
            if (!rank || (highest && *rank <= *highest)) continue;
            highest = std::move(rank);
            best = wheel;
        }
        return best;
    }

    const LockedByUv& lock_;
    std::set<std::string> missing_;
    Resolution resolution_;
};

} // namespace

std::string ResolvedPackage::requirement() const {
    return requirement_line({.name = name, .version = version, .metadata = {}, .origin = source});
}

bool is_one_word(std::string_view text) {
    return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c != 0x7f; });
}

std::string file_name_in(std::string_view url) {
    url = url.substr(0, url.find_first_of("?#"));
    return url_decoded(url.substr(url.rfind('/') + 1));
}

Result<Resolution> read_report(std::string_view text, const Permitted& permitted) {
    const auto root = parse_json_quietly(text);
    const auto version = text_of(root, "version");
    const bool is_known = version == "1" || version.starts_with("1."); // as pip's documentation promises
    if (!is_known || !root.contains("install") || !root["install"].is_array())
        return fail({.what = "pip's report cannot be read",
                     .why = version.empty() ? "it is no report" : "its version is " + printable(version)});
    Resolution resolution;
    for (const auto& entry : root["install"])
        if (entry.is_object()) TRY(add_reported(entry, permitted, resolution));
    sort(resolution);
    return resolution;
}

std::string Planned::pin() const {
    return url.empty() ? name + "==" + version : name + " @ " + url;
}

std::optional<Planned> planned_by_uv(std::string_view line) {
    constexpr std::string_view added = " + ", again = " ~ ", at = " @ ";
    if (!line.starts_with(added) && !line.starts_with(again)) return std::nullopt;
    line.remove_prefix(added.size());
    if (const auto place = line.find(at); place != line.npos)
        return Planned{.name = std::string(line.substr(0, place)),
                       .url = std::string(trimmed(line.substr(place + at.size())))};
    const auto equals = line.find("==");
    if (equals == line.npos) return std::nullopt;
    const auto version = line.substr(equals + 2);
    const auto end = version.find(' ');
    Planned planned{.name = std::string(line.substr(0, equals)),
                    .version = std::string(version.substr(0, end))};
    // Other versions of uv: "six==1.17.0 (from file:///...)"
    constexpr std::string_view from = " (from ";
    if (const auto rest = end == version.npos ? std::string_view() : version.substr(end);
        rest.starts_with(from) && rest.ends_with(')')) {
        planned.url = rest.substr(from.size(), rest.size() - from.size() - 1);
        planned.version.clear();
    }
    return planned;
}

Result<Resolution> read_lock_of_uv(const LockedByUv& lock) {
    const auto parsed = toml::parse(lock.text);
    if (parsed) return LockReader(lock).read(parsed.table());
    const auto& problem = parsed.error();
    return fail({.what = "the lock that uv wrote cannot be read",
                 .why = fmt::format("line {}: {}", problem.source().begin.line, problem.description())});
}

} // namespace containerize::pip
