#include "core/staging.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/open_file.h"
#include "core/ownership.h"
#include "core/variables.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize {

namespace {

std::string name_prefix() {
    return "containerize-build-" + std::to_string(geteuid()) + "-";
}

std::unexpected<Error> unusable(const fs::path& parent, std::string why) {
    return fail({.what = "cannot build in this directory",
                 .why = std::move(why),
                 .where = parent.string(),
                 .hint = "Choose a directory on a local disk of this node with --tmpdir."});
}

/// Whether a build can be staged under `parent`.
Status check_parent(const fs::path& parent) {
    struct stat info {};
    if (stat(parent.c_str(), &info) != 0) return unusable(parent, std::strerror(errno));
    if (!S_ISDIR(info.st_mode)) return unusable(parent, "it is not a directory");
    // Without the sticky bit any user could rename our directory and put another in its place.
    if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0)
        return unusable(parent, "all users can write to it, and it has no sticky bit");
    // With it, the directory's owner still could. A group that shares a directory trusts its owner. In a user
    // namespace, root's directories appear to be nobody's.
    constexpr uid_t nobody = 65534;
    if ((info.st_mode & S_IWOTH) != 0 && !is_of(info) && info.st_uid != nobody)
        return unusable(parent, "it belongs to another user, and all users can write to it");
    if (access(parent.c_str(), W_OK | X_OK) != 0) return unusable(parent, std::strerror(errno));
    // pip runs what it has just built, and programs load libraries from here.
    if (is_noexec(parent)) return unusable(parent, "it is mounted noexec");
    return {};
}

Result<fs::path> default_parent() {
    std::vector<fs::path> candidates;
    if (const char* tmpdir = value_of("TMPDIR"); tmpdir != nullptr && *tmpdir == '/')
        candidates.emplace_back(tmpdir);
    candidates.emplace_back("/tmp");
    candidates.emplace_back("/dev/shm");
    std::string reasons;
    for (const auto& candidate : candidates) {
        const auto type = filesystem_type(candidate);
        const auto checked = is_network_filesystem(type)
                                 ? unusable(candidate, "it is on a network filesystem (" + type + ")")
                                 : check_parent(candidate);
        if (checked) return candidate;
        reasons += (reasons.empty() ? "" : "; ") + candidate.string() + ": " + checked.error().why;
    }
    return fail({.what = "there is no usable directory to build in",
                 .why = std::move(reasons),
                 .hint = "Choose a directory on a local disk of this node with --tmpdir."});
}

Fd open_directory(const fs::path& path) {
    return Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

} // namespace

Staging::Staging(fs::path path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

Result<Staging> Staging::create(const fs::path& parent) {
    auto chosen = TRY(parent.empty() ? default_parent() : resolve(parent));
    TRY(check_parent(chosen));
    for (;;) {
        std::string name = (chosen / name_prefix()).string() + "XXXXXX";
        if (mkdtemp(name.data()) == nullptr) return unusable(chosen, std::strerror(errno));
        const fs::path path = name;
        Fd lock = open_directory(path);
        if (!lock && errno != ENOENT) {
            const int problem = errno;
            rmdir(path.c_str());
            return fail_errno("cannot open the staging directory", path.string(), problem);
        }
        // The lock is on the directory itself, which systemd-tmpfiles respects. On filesystems without such
        // locks (NFS, Lustre without -o flock), the sweep cannot lock it either, and so removes nothing by
        // mistake.
        const bool locked = lock && flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
        if (!locked && lock && errno != EWOULDBLOCK) return Staging(path, std::move(lock));
        // A sweep may have locked or removed it between mkdtemp() and flock(): try again under another name.
        if (locked && is_named(lock, path)) return Staging(path, std::move(lock));
    }
}

Staging::Staging(Staging&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

Staging::~Staging() {
    // What cannot be removed now is left to the next sweep: a destructor cannot report errors.
    if (!path_.empty()) [[maybe_unused]]
        const auto removed = remove_tree(path_);
}

fs::path Staging::keep() {
    auto kept = std::exchange(path_, {});
    // mkdtemp() made the end of the name unique. If a file has the other name already, this one stays.
    const auto name = "containerize-kept-" + kept.filename().string().substr(name_prefix().size());
    if (renameat2(AT_FDCWD, kept.c_str(), AT_FDCWD, kept.parent_path().append(name).c_str(),
                  RENAME_NOREPLACE) == 0)
        kept.replace_filename(name);
    return kept;
}

void sweep_staging(const fs::path& parent) {
    auto chosen = parent.empty() ? default_parent() : resolve(parent);
    if (!chosen) return;
    const auto prefix = name_prefix();
    for (const auto& name : names_in(*chosen)) {
        // Only names with mkdtemp()'s six letters after the prefix are ours.
        const auto path = *chosen / name;
        if (!name.starts_with(prefix) || name.size() != prefix.size() + 6) continue;
        const Fd directory = open_directory(path);
        struct stat info {};
        if (!directory || fstat(directory.get(), &info) != 0 || info.st_uid != geteuid()) continue;
        if (flock(directory.get(), LOCK_EX | LOCK_NB) != 0 || !is_named(directory, path)) continue;
        [[maybe_unused]] const auto removed = remove_tree(path);
    }
}

} // namespace containerize
