#include "mounts/mount_point.h"

#include "core/entries.h"
#include "core/fd.h"
#include "core/filesystem.h"
#include "launch/launch_plan.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize::mounts {

namespace {

bool directory_exists(const fs::path& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::unexpected<Error> cannot(const fs::path& path, int error_number = errno) {
    return fail_errno("cannot create the mount point", path.string(), error_number);
}

/// The paths missing below `existing`, down to `path`, parents first.
std::vector<MissingPath> missing_below(const fs::path& existing, const MissingPath& path) {
    std::vector<MissingPath> missing = {path};
    for (fs::path one = fs::path(path.path).parent_path(); one != existing; one = one.parent_path())
        missing.insert(missing.begin(), {.path = one.string(), .directory = true});
    return missing;
}

std::string through(const Fd& directory, const std::string& name = {}) {
    return path_of(directory) + (name.empty() ? "" : "/" + name);
}

/// Makes an empty directory or file.
bool make(const std::string& path, bool directory) {
    return (directory ? mkdir(path.c_str(), 0755) : mknod(path.c_str(), S_IFREG | 0644, 0)) == 0;
}

Status bind_to(const std::string& from, const std::string& to, bool directory) {
    if (!make(to, directory) || mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
        return cannot(to);
    return {};
}

/// The names in a directory; none if it is missing, is no directory, or may not even be passed through, such
/// as another user's home: that holds nothing for us.
Result<std::set<std::string>> names_to_keep(const std::string& directory) {
    const Fd opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const bool closed = errno == EACCES && access(directory.c_str(), X_OK) != 0;
    if (!opened && (closed || errno == ENOENT || errno == ENOTDIR)) return {};
    if (!opened) return cannot(directory);
    std::error_code failed;
    auto names = names_in(path_of(opened), failed);
    if (failed) return cannot(directory, failed.value());
    return names;
}

// Reproduces `from` as `to`: copies a link, binds anything else with all mounts in it.
Status reproduce(const std::string& from, const std::string& to) {
    struct stat info {};
    if (lstat(from.c_str(), &info) != 0) return {}; // vanished, or not visible to us: no loss
    if (!S_ISLNK(info.st_mode)) return bind_to(from, to, S_ISDIR(info.st_mode));
    std::error_code failed;
    fs::copy_symlink(from, to, failed);
    if (failed) return cannot(to, failed.value());
    return {};
}

/// The directories that this process has covered; they stay covered as long as its namespace exists.
std::set<fs::path>& covers() {
    static std::set<fs::path> all;
    return all;
}

Status allow_writes(const fs::path& covered, bool allowed) {
    const unsigned long read_only = allowed ? 0 : MS_RDONLY;
    if (mount(nullptr, covered.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | read_only,
              nullptr) != 0)
        return cannot(covered);
    return {};
}

// Covers `covered` by a directory in memory with the same entries, and adds `missing`, parents first.
Status cover(const fs::path& covered, const std::vector<MissingPath>& missing) {
    const bool whole_root = covered == covered.root_path();
    // "/" cannot be covered in place: its copy is assembled elsewhere and then made the root.
    const std::string place = whole_root ? "/tmp" : covered.string();
    const Fd original(open(covered.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const Fd place_before(open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!original || !place_before) return cannot(covered);
    const auto names = TRY(names_to_keep(through(original, ".")));
    if (mount("containerize", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m") != 0)
        return cannot(place);
    const auto is_missing = [&missing](const std::string& path) {
        return std::ranges::find(missing, path, &MissingPath::path) != missing.end();
    };
    for (const auto& name : names) {
        const std::string to = place + "/" + name;
        // A path in `missing` replaces this entry: a link in its way, or a directory that is created again.
        if (is_missing((covered / name).string())) continue;
        // Its old descriptor shows what `place` held before it was mounted on. The recursive bind copies the
        // new mount as well, which is taken off again.
        const bool is_place = whole_root && "/" + name == place;
        TRY(is_place ? bind_to(through(place_before), to, true) : reproduce(through(original, name), to));
        if (is_place && umount2(to.c_str(), MNT_DETACH) != 0) return cannot(covered);
    }
    for (const auto& [path, directory] : missing) {
        const auto inside = whole_root ? place + path : path;
        if (!make(inside, directory)) return cannot(path);
        // What exists, but could be replaced by others, is created again with its old entries.
        const auto before = through(original, fs::path(path).lexically_relative(covered).string());
        const auto held = TRY(names_to_keep(before));
        for (const auto& name : held)
            if (const std::string below = "/" + name; !is_missing(path + below))
                TRY(reproduce(before + below, inside + below));
    }
    TRY(allow_writes(place, false));
    if (whole_root) TRY(change_root(place.c_str()));
    covers().insert(covered);
    return {};
}

// Adds directories to one of our covers.
Status extend_cover(const fs::path& covered, const std::vector<MissingPath>& missing) {
    Status done = allow_writes(covered, true);
    for (const auto& directory : missing)
        if (done && mkdir(directory.path.c_str(), 0755) != 0) done = cannot(directory.path);
    if (auto closed = allow_writes(covered, false); done) return closed;
    return done;
}

// Others could replace what is in `foreign`, so everything from there on is made in memory. A directory that
// the user may write to cannot be covered, because programs write there.
Status cover_foreign(const fs::path& path, const Foreign& foreign) {
    const fs::path start = foreign.path;
    bool can_cover = !foreign.unknown && directory_exists(start) && is_below(path, start) && path != start;
    for (fs::path one = path.parent_path(); can_cover && is_below(one, start); one = one.parent_path())
        can_cover = !directory_exists(one) || access(one.c_str(), W_OK) != 0;
    if (can_cover) return cover(start, missing_below(start, {.path = path.string(), .directory = true}));
    return no_safe_place(path, foreign);
}

} // namespace

OwnershipRules rules_of_other_place(const std::string& prefix, Look look) {
    OwnershipRules rules{.must_stay = true, .beside = prefix, .look = std::move(look)};
    if (struct stat own{}; rules.look((prefix + "/" + launch::manifest_name).c_str(), &own) == 0)
        rules.owner = own.st_uid;
    return rules;
}

std::unexpected<Error> no_safe_place(const fs::path& path, const Foreign& foreign) {
    if (foreign.unknown)
        return fail(
            {.what = "cannot determine the owners of the directories above this path",
             .why = foreign.path + ": the process that looks them up was killed, or could not read it",
             .where = path.string(),
             .hint = "Try again in a shell outside of containerized programs."});
    return fail({.what = "another user could replace the directory at the installation's original path",
                 .why = foreign.path + ": " + foreign.why,
                 .where = path.string(),
                 .hint = "Its programs refer to that path. Build the installation again where it is now."});
}

fs::path nearest_directory(const fs::path& path) {
    fs::path existing = path.parent_path();
    while (!directory_exists(existing))
        existing = existing.parent_path();
    return existing;
}

bool needs_new_root(const fs::path& path) {
    return !directory_exists(path) && nearest_directory(path) == "/" && access("/", W_OK) != 0 &&
           !covers().contains("/");
}

Status make_mount_point(const fs::path& path, const OwnershipRules& rules) {
    if (const auto foreign = find_foreign(path.string(), rules)) return cover_foreign(path, *foreign);
    if (directory_exists(path)) return {};
    const auto existing = nearest_directory(path);
    const auto missing = missing_below(existing, {.path = path.string(), .directory = true});
    if (covers().contains(existing)) return extend_cover(existing, missing);
    if (access(existing.c_str(), W_OK) != 0) return cover(existing, missing);
    for (const auto& directory : missing)
        if (mkdir(directory.path.c_str(), 0755) != 0 && errno != EEXIST) return cannot(directory.path);
    return {};
}

Status cover_missing(const fs::path& root, std::span<const MissingPath> missing) {
    // Covers each directory once, with all that it lacks.
    std::map<fs::path, std::vector<MissingPath>> by_existing;
    for (const auto& one : missing) {
        const MissingPath whole{.path = root.string() + one.path, .directory = one.directory};
        const auto existing = nearest_directory(whole.path);
        auto& list = by_existing[existing];
        for (const auto& part : missing_below(existing, whole))
            if (std::ranges::find(list, part.path, &MissingPath::path) == list.end()) list.push_back(part);
    }
    for (const auto& [existing, list] : by_existing)
        TRY(cover(existing, list));
    return {};
}

Status change_root(const fs::path& new_root) {
    if (chdir(new_root.c_str()) != 0) return cannot("/");
    // With both arguments ".", the old root ends up on top of the new one, from where it is detached.
    if (syscall(SYS_pivot_root, ".", ".") == 0)
        return umount2(".", MNT_DETACH) == 0 && chdir("/") == 0 ? Status() : cannot("/");
    // The kernel's initial root, which diskless nodes may run from, cannot be exchanged, only covered.
    if (errno != EINVAL || mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 || chroot(".") != 0 ||
        chdir("/") != 0)
        return cannot("/");
    return {};
}

} // namespace containerize::mounts
