#include "conda/repodata_state.h"

#include "conda/cache_directory.h"
#include "core/entries.h"
#include "core/fd.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "util/digest.h"
#include "util/json.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

namespace containerize::conda {

namespace {

using nlohmann::json;

constexpr std::int64_t hour = 3600;
constexpr std::int64_t longest_age = 24 * hour;
constexpr std::size_t short_identity = 16;

std::int64_t nanoseconds(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

RepodataState from_json(const json& object) {
    RepodataState state;
    state.url = object.at("url").get<std::string>();
    state.form = object.at("form").get<std::string>();
    state.identity = object.at("identity").get<std::string>();
    state.size = to_integer<std::uint64_t>(object.at("size"));
    state.changed = to_integer<std::int64_t>(object.at("changed"));
    state.etag = object.at("etag").get<std::string>();
    state.last_modified = object.at("last_modified").get<std::string>();
    state.max_age = to_integer<std::int64_t>(object.at("max_age"));
    state.checked = to_integer<std::int64_t>(object.at("checked"));
    state.lacking = object.at("lacking").get<std::map<std::string, std::int64_t>>();
    state.source = object.at("source").get<std::string>();
    return state;
}

json to_json(const RepodataState& state) {
    return {{"url", state.url},
            {"form", state.form},
            {"identity", state.identity},
            {"size", state.size},
            {"changed", state.changed},
            {"etag", state.etag},
            {"last_modified", state.last_modified},
            {"max_age", state.max_age},
            {"checked", state.checked},
            {"lacking", state.lacking},
            {"source", state.source}};
}

} // namespace

RepodataSlot::RepodataSlot(fs::path directory, std::string url)
    : directory_(std::move(directory)), url_(std::move(url)), key_(sha256(url_).substr(0, short_identity)) {}

std::optional<RepodataState> RepodataSlot::read() const {
    const auto file = open_own(directory_ / (key_ + ".state.json"));
    if (!file) return std::nullopt;
    const auto text = read_file(path_of(*file.file), 1U << 20U);
    if (!text) return std::nullopt;
    try {
        auto state = from_json(parse_json(*text));
        const bool fits = state.url == url_ && (state.identity.empty() || is_hex(state.identity, 64));
        // They are sent back as headers, so they must not contain line breaks.
        const bool plain = (state.etag + state.last_modified).find_first_of("\r\n") == std::string::npos;
        return fits && plain ? std::optional(std::move(state)) : std::nullopt;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

Status RepodataSlot::write(const RepodataState& state) const {
    return write_own(directory_ / (key_ + ".state.json"),
                     to_json(state).dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

fs::path RepodataSlot::json(const RepodataState& state) const {
    return directory_ / (key_ + "-" + state.identity.substr(0, short_identity) + ".json");
}

fs::path RepodataSlot::lock() const {
    return directory_ / (key_ + ".lock");
}

OpenFile RepodataSlot::content(const RepodataState& state) const {
    if (state.identity.empty()) return {};
    auto file = open_own(json(state));
    struct stat info {};
    const bool fits = file && fstat(file.fd(), &info) == 0 &&
                      static_cast<std::uint64_t>(info.st_size) == state.size &&
                      nanoseconds(info.st_mtim) == state.changed;
    return fits ? file : OpenFile();
}

Status RepodataSlot::adopt(OpenFile& finished, RepodataState& state) const {
    struct stat info {};
    if (fstat(finished.fd(), &info) != 0) return fail_errno("cannot read the file", finished.path.string());
    state.size = static_cast<std::uint64_t>(info.st_size);
    state.changed = nanoseconds(info.st_mtim);
    if (rename(finished.path.c_str(), json(state).c_str()) != 0)
        return fail_errno("cannot move the file into the cache", json(state).string());
    finished.path = json(state);
    return {};
}

void RepodataSlot::remove_outdated(const RepodataState& state) const {
    const auto current = json(state).filename().string();
    std::error_code problem;
    const auto names = names_in(directory_);
    for (const auto& name : names) {
        // Another build may be about to open it.
        const bool is_old = name.starts_with(key_ + "-") && name.ends_with(".json") && name != current &&
                            last_use(directory_ / name) + hour < std::time(nullptr);
        if (!is_old) continue;
        fs::remove(directory_ / name, problem);
        const auto identity = name.substr(key_.size() + 1, short_identity);
        for (const auto& derived : names)
            if (derived.starts_with(identity)) fs::remove(directory_ / derived, problem);
    }
}

bool is_repodata_file(std::string_view name) {
    constexpr std::size_t identity = 64;
    if (name.starts_with(".tmp-")) return true;
    if (name.starts_with('.')) name.remove_prefix(1); // see write_file()
    if (is_hex(name.substr(0, identity), identity)) return name.substr(identity).starts_with('.');
    if (!is_hex(name.substr(0, short_identity), short_identity)) return false;
    const auto rest = name.substr(short_identity);
    if (rest == ".lock" || rest.starts_with(".state.json")) return true;
    return rest.starts_with('-') && rest.ends_with(".json") &&
           is_hex(rest.substr(1, rest.size() - 6), short_identity);
}

std::int64_t max_age(const std::string& cache_control) {
    const auto text = lower(cache_control);
    if (text.find("no-cache") != std::string::npos || text.find("no-store") != std::string::npos) return 0;
    auto at = text.find("max-age=");
    // Does not match "s-maxage", which is for shared caches.
    if (at == std::string::npos) return 0;
    at += 8;
    std::int64_t seconds = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), seconds);
    return std::clamp<std::int64_t>(seconds, 0, longest_age);
}

bool is_fresh(const RepodataState& state, int ttl, std::int64_t now) {
    const std::int64_t holds = ttl == 1 ? std::clamp<std::int64_t>(state.max_age, 0, longest_age) : ttl;
    // `checked` is in the future if the clock was set back.
    return state.checked <= now && now - state.checked < holds;
}

void mark_used(const fs::path& file) {
    // Keep mtime, by which content is recognised.
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_NOW}, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
    utimensat(AT_FDCWD, file.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

std::int64_t last_use(const fs::path& file) {
    struct stat info {};
    if (lstat(file.c_str(), &info) != 0) return 0;
    return std::max<std::int64_t>(info.st_atim.tv_sec, info.st_mtim.tv_sec);
}

} // namespace containerize::conda
