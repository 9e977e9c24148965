#include "build/command_environments.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "manifest/manifest.h"
#include "util/json.h"
#include "util/log.h"
#include "util/redact.h"
#include "util/shared_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace containerize::build {

namespace {

using nlohmann::json;

constexpr const char* lock_of_all = ".lock";
constexpr const char* lock_of_one = "lock";
constexpr const char* description = "about.json";
constexpr std::string_view removed_start = ".removed-";
/// What mkdtemp() appends to the key.
constexpr std::string_view unique_end = "-XXXXXX";

bool is_complete(const fs::path& directory) {
    return manifest::is_installation(directory / "env");
}

/// Empty if this is no name of an environment.
std::string key_in(const fs::path& directory) {
    const auto name = directory.filename().string();
    if (name.size() != key_digits + unique_end.size() || name[key_digits] != '-') return {};
    auto key = name.substr(0, key_digits);
    return is_hex(key, key_digits) ? key : std::string();
}

/// Whether it is the name of what is left of an environment.
bool is_removed(const std::string& name) {
    return name.starts_with(removed_start) && !key_in(name.substr(removed_start.size())).empty();
}

/// Whether a build that ended early may have left this. In a directory that somebody chose, a name proves
/// nothing.
bool is_begun(const fs::path& directory) {
    struct stat info {};
    if (lstat((directory / lock_of_one).c_str(), &info) == 0) return S_ISREG(info.st_mode);
    std::error_code failed;
    return names_in(directory, failed).empty() && !failed;
}

Time time_of(const fs::path& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) return {};
    const auto since =
        std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
    return Time(std::chrono::duration_cast<Time::duration>(since));
}

std::uint64_t size_of(const fs::path& directory) {
    std::uint64_t bytes = 0;
    std::set<ino_t> counted; // wrappers are hard links to one program
    std::error_code ignored;
    for (const auto& entry : entries_below(directory, ignored)) {
        struct stat info {};
        if (lstat(entry.path().c_str(), &info) == 0 && counted.insert(info.st_ino).second)
            bytes += static_cast<std::uint64_t>(info.st_size);
    }
    return bytes;
}

std::vector<std::string> packages_of(const fs::path& directory) {
    const auto text = read_file(directory / description);
    return text ? texts_of(parse_json_quietly(*text), "packages") : std::vector<std::string>();
}

Result<FileLock> lock_one(const fs::path& directory, LockKind kind) {
    return try_lock(directory / lock_of_one, 0600, kind);
}

bool is_free(const fs::path& directory) {
    const auto lock = lock_one(directory, LockKind::exclusive);
    return lock && lock->state == LockState::held;
}

CommandEnvironment describe(const fs::path& directory) {
    return {.directory = directory,
            .key = key_in(directory),
            .packages = packages_of(directory),
            .bytes = size_of(directory),
            .built = time_of(directory / description),
            .last_use = time_of(directory / lock_of_one),
            .in_use = !is_free(directory)};
}

/// First under another name: a part of an environment must not be taken for all of it.
bool remove_one(const fs::path& directory) {
    auto moved = directory;
    moved.replace_filename(std::string(removed_start) + directory.filename().string());
    if (rename(directory.c_str(), moved.c_str()) != 0) return false;
    const auto removed = remove_tree(moved);
    if (!removed) log::detail(to_string(removed.error()));
    return removed.has_value();
}

bool has_successor(const CommandEnvironment& one, const std::vector<CommandEnvironment>& all) {
    return std::ranges::any_of(
        all, [&one](const auto& other) { return other.key == one.key && other.built > one.built; });
}

/// Waits for a moment.
Status pause() {
    constexpr int patience_ms = 100;
    pollfd interrupt{.fd = interrupt_fd(), .events = POLLIN, .revents = 0};
    poll(&interrupt, 1, patience_ms);
    return interrupted() ? fail_interrupted() : Status();
}

/// Whether we can neither write the file nor create it.
bool is_read_only(const fs::path& file) {
    int result = faccessat(AT_FDCWD, file.c_str(), R_OK | W_OK, AT_EACCESS);
    if (result != 0 && errno == ENOENT)
        result = faccessat(AT_FDCWD, file.parent_path().c_str(), W_OK | X_OK, AT_EACCESS);
    return result != 0 && (errno == EROFS || errno == EACCES);
}

std::unexpected<Error> unusable(const fs::path& directory, std::string why) {
    return fail_input("cannot keep environments in this directory", std::move(why), directory.string(),
                      "Choose another directory with `exec_environments` in the configuration.");
}

/// Those of one key, the newest first.
std::vector<fs::path> with_key(std::vector<fs::path> directories, const std::string& key) {
    std::erase_if(directories, [&key](const fs::path& one) { return key_in(one) != key; });
    std::ranges::sort(directories, std::ranges::greater(),
                      [](const fs::path& one) { return time_of(one / description); });
    return directories;
}

/// Takes the first that is complete.
std::optional<ClaimedEnvironment> take(const std::vector<fs::path>& candidates) {
    for (const auto& directory : candidates) {
        if (!is_complete(directory)) continue;
        auto lock = lock_one(directory, LockKind::shared);
        if (!lock || lock->state == LockState::busy) continue;
        futimens(lock->file.get(), nullptr);
        return ClaimedEnvironment{.directory = directory, .lock = std::move(*lock), .complete = true};
    }
    return std::nullopt;
}

bool is_any_built(const std::vector<fs::path>& candidates) {
    return std::ranges::any_of(candidates, [](const fs::path& directory) {
        const auto lock = lock_one(directory, LockKind::shared);
        return lock && lock->state == LockState::busy;
    });
}

} // namespace

std::vector<std::size_t> environments_to_remove(const std::vector<CommandEnvironment>& all,
                                                std::uint64_t limit) {
    std::uint64_t total = 0;
    for (const auto& one : all)
        total += one.bytes;
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(
        order, {}, [&all](std::size_t i) { return std::pair(!has_successor(all[i], all), all[i].last_use); });
    std::vector<std::size_t> chosen;
    for (const auto i : order) {
        if (all[i].in_use || (total <= limit && !has_successor(all[i], all))) continue;
        chosen.push_back(i);
        total -= all[i].bytes;
    }
    return chosen;
}

Status CommandEnvironments::make() const {
    const auto parent = directory_.parent_path();
    if (!quiet::exists(directory_))
        if (auto why = make_shared_directory(parent); !why.empty()) return unusable(parent, std::move(why));
    if (auto foreign = find_foreign_below(parent, directory_))
        return unusable(foreign->path, std::move(foreign->why));
    if (auto why = make_private_directory(directory_); !why.empty())
        return unusable(directory_, std::move(why));
    return {};
}

bool CommandEnvironments::exists() const {
    // Where users share the cache, another one may have put a link to somewhere else here.
    struct stat info {};
    return lstat(directory_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           is_ours_alone(info) && !find_foreign_below(directory_.parent_path(), directory_);
}

Result<FileLock> CommandEnvironments::lock() const {
    return wait_for_lock(directory_ / lock_of_all, 0600);
}

std::vector<fs::path> CommandEnvironments::directories() const {
    std::vector<fs::path> found;
    for (const auto& name : names_in(directory_))
        if (!key_in(name).empty()) found.push_back(directory_ / name);
    return found;
}

std::vector<CommandEnvironment> CommandEnvironments::all() const {
    std::vector<CommandEnvironment> found;
    for (const auto& directory : directories())
        if (is_complete(directory)) found.push_back(describe(directory));
    return found;
}

void CommandEnvironments::sweep() const {
    for (const auto& name : names_in(directory_))
        if (is_removed(name)) [[maybe_unused]]
            const auto removed = remove_tree(directory_ / name);
    for (const auto& directory : directories())
        if (!is_complete(directory) && is_begun(directory) && is_free(directory)) remove_one(directory);
}

Result<ClaimedEnvironment> CommandEnvironments::begin(const std::string& key,
                                                      const std::vector<std::string>& packages) const {
    std::string name = (directory_ / (key + std::string(unique_end))).string();
    if (mkdtemp(name.data()) == nullptr) return fail_errno("cannot create a directory", name);
    auto lock = lock_one(name, LockKind::exclusive);
    if (!lock) {
        remove_one(name);
        return fail(std::move(lock.error()));
    }
    ClaimedEnvironment begun{.directory = name, .lock = std::move(*lock)};
    json about = {{"packages", json::array()}};
    for (const auto& one : packages)
        about["packages"].push_back(redacted(one));
    TRY(write_file(begun.directory / description,
                   about.dump(2, ' ', false, json::error_handler_t::replace) + "\n"));
    return begun;
}

Result<ClaimedEnvironment> CommandEnvironments::claim(const std::string& key,
                                                      const std::vector<std::string>& packages,
                                                      bool anew) const {
    TRY(make());
    for (bool told = false;; told = true) {
        {
            const auto locked = TRY(lock());
            const auto candidates = with_key(directories(), key);
            auto taken = anew ? std::nullopt : take(candidates);
            if (taken) return std::move(*taken);
            if (anew || !is_any_built(candidates)) {
                sweep();
                return begin(key, packages);
            }
        }
        if (!told) log::info("Waiting for another process that builds the same environment");
        TRY(pause());
    }
}

Status CommandEnvironments::share(ClaimedEnvironment& claimed, std::uint64_t limit) const {
    const auto locked = TRY(lock());
    if (claimed.lock.state == LockState::held && flock(claimed.lock.file.get(), LOCK_SH) != 0)
        return fail_errno("cannot lock the environment", claimed.directory.string());
    futimens(claimed.lock.file.get(), nullptr);
    claimed.complete = true;
    const auto environments = all();
    for (const auto i : environments_to_remove(environments, limit))
        remove_one(environments[i].directory);
    return {};
}

Result<std::vector<CommandEnvironment>> CommandEnvironments::list() const {
    if (!exists()) return std::vector<CommandEnvironment>();
    std::optional<FileLock> locked;
    if (!is_read_only(directory_ / lock_of_all)) locked = TRY(lock());
    auto found = all();
    std::ranges::sort(found, std::ranges::greater(), &CommandEnvironment::last_use);
    return found;
}

Result<RemovedEnvironments> CommandEnvironments::remove(std::chrono::hours unused) const {
    RemovedEnvironments removed;
    if (!exists()) return removed;
    const auto locked = TRY(lock());
    sweep();
    const auto now = std::chrono::system_clock::now();
    for (const auto& one : all()) {
        // A time in the future, of another machine, is no reason to keep what shall all be removed.
        if (unused.count() != 0 && now - one.last_use < unused) continue;
        if (one.in_use) {
            ++removed.in_use;
            continue;
        }
        if (!remove_one(one.directory)) continue;
        ++removed.number;
        removed.bytes += one.bytes;
    }
    return removed;
}

} // namespace containerize::build
