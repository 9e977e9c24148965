#include "prefix/prefix.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/ownership.h"
#include "core/text.h"
#include "core/variables.h"
#include "launch/namespace.h"
#include "manifest/manifest.h"
#include "util/user_text.h"

#include <array>
#include <fstream>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

/// The first entry that no unfinished build of ours left behind; empty if there is none.
std::string foreign_entry(const fs::path& directory) {
    std::error_code failed;
    std::set<std::string> others;
    std::set<std::string> begun;
    for (const auto& entry : entries_in(directory, failed)) {
        const auto name = entry.path().filename().string();
        if (name.starts_with(own_leftovers) && is_left_by_us(entry.path()))
            begun.merge(listed_names(entry.path()));
        else
            others.insert(name);
    }
    for (const auto& name : others)
        if (!begun.contains(name)) return name;
    return {};
}

// An assembly's name holds that of the prefix, a number and the host name: 255 bytes at most.
constexpr std::size_t longest_name = 160;

bool is_special(const fs::path& prefix) {
    static constexpr auto places = std::to_array<std::string_view>(
        {"/",     "/bin",  "/boot", "/dev",  "/etc", "/home", "/lib", "/lib64", "/media",     "/mnt", "/opt",
         "/proc", "/root", "/run",  "/sbin", "/srv", "/sys",  "/tmp", "/usr",   "/usr/local", "/var"});
    for (const auto place : places)
        if (prefix == place) return true;
    const char* home = value_of("HOME");
    std::error_code failed;
    return home != nullptr && *home != '\0' && prefix == fs::weakly_canonical(home, failed);
}

/// Other users can only change this if its owner lets them. Root always can.
bool is_of_another(const struct stat& info) {
    return !is_of(info) && launch::has_access_to_other_users();
}

Status check_maintainer(const Fd& directory, const fs::path& prefix) {
    struct stat info {};
    if (fstat(directory.get(), &info) != 0) return fail_errno("cannot examine the prefix", prefix.string());
    if ((info.st_mode & S_IWOTH) != 0)
        return fail_input(
            "all users can write to this directory", "they could replace the files in it", prefix.string(),
            manifest::is_installation(prefix)
                ? "Make sure that nobody else has changed or added files there, and let its owner run "
                  "`chmod -R o-w " +
                      shell_quoted(prefix.string()) + "`."
                : "Choose another prefix.");
    if (!is_of_another(info)) return {};
    return fail_input(
        "this directory belongs to another user",
        "as root, this command would run that user's programs and follow that user's links", prefix.string(),
        "Run the command as the owner, or make a new installation in a directory that does not exist yet.");
}

} // namespace

bool is_left_by_us(const fs::path& assembly) {
    struct stat info {};
    struct stat parent {};
    if (lstat(assembly.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
    if (info.st_uid == geteuid()) return true;
    return stat(assembly.parent_path().c_str(), &parent) == 0 &&
           why_foreign(parent, info, geteuid()) == nullptr;
}

std::set<std::string> listed_names(const fs::path& assembly) {
    std::set<std::string> names;
    std::istringstream lines(read_file(assembly / names_to_come).value_or(""));
    for (std::string name; std::getline(lines, name);)
        if (!name.empty() && name != "." && name != ".." && !name.contains('/')) names.insert(name);
    return names;
}

Status check_maintainer(const fs::path& prefix) {
    const Fd directory(open(prefix.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (directory) return check_maintainer(directory, prefix);
    if (errno == ENOENT) return {};
    return fail_errno("cannot open the prefix", prefix.string());
}

Status check_later_changes(const PrefixLock& lock) {
    struct stat info {};
    if (fstat(lock.lock.get(), &info) != 0)
        return fail_errno("cannot examine the prefix", lock.prefix.string());
    if (!is_of_another(info)) return {};
    return fail_input(
        "root's files belong to another user on this filesystem",
        "so root cannot change an installation here, as this command would after building it",
        lock.prefix.string(),
        "Run the command as the user who shall own the installation, or choose a prefix on another "
        "filesystem.");
}

Result<fs::path> check_prefix(const std::string& given, bool force) {
    if (given.empty()) return fail_input("the prefix is empty", {}, {}, "Give --prefix a directory.");
    auto prefix = TRY(resolve(given));
    std::string shown = prefix.string();
    if (const auto length = prefix.filename().native().size(); length > longest_name)
        return fail_input("the name of this prefix is too long",
                          "it has " + std::to_string(length) + " bytes, and the limit is " +
                              std::to_string(longest_name),
                          shown, "Choose a shorter name.");
    // Check the resolved path, not only the one given.
    if (shown.find(':') != std::string::npos || shown.find('\n') != std::string::npos)
        return fail_input("this prefix cannot be used",
                          "PATH cannot contain a directory with ':' or a line break in its name", shown,
                          "Choose another directory.");
    if (!is_utf8(shown)) // the manifest is JSON
        return fail_input("this prefix cannot be used",
                          "its name is not valid UTF-8, which the manifest requires", shown,
                          "Choose another directory.");
    if (is_special(prefix))
        return fail_input("an installation cannot use this directory", {}, shown,
                          "Choose a separate directory, such as " + shown + (shown == "/" ? "" : "/") +
                              "env.");
    if (is_noexec(prefix))
        return fail_input("no program can be started in this prefix", "its filesystem is mounted noexec",
                          shown, "Choose a prefix on another filesystem.");
    for (auto parent = prefix.parent_path(); parent != parent.root_path(); parent = parent.parent_path())
        if (manifest::is_installation(parent))
            return fail_input("this prefix is inside another installation", parent.string(), shown,
                              "Choose a directory outside of it.");
    struct stat info {};
    if (stat(prefix.c_str(), &info) != 0) {
        if (errno == ENOENT) return prefix;
        return fail_errno("cannot examine the prefix", shown);
    }
    if (!S_ISDIR(info.st_mode))
        return fail_input("the prefix is not a directory", {}, shown,
                          "Choose another prefix, or remove the file.");
    if (manifest::is_installation(prefix)) {
        if (force) return prefix;
        return fail_input("an installation already exists here", {}, shown,
                          "Use --force to replace it, or choose another prefix.");
    }
    if (const auto entry = foreign_entry(prefix); !entry.empty())
        return fail_input("the prefix is not empty", "it contains '" + entry + "'", shown,
                          "Choose a directory that is empty or does not exist.");
    return prefix;
}

Status check_outside(const fs::path& file, const fs::path& prefix) {
    const auto relative = file.lexically_relative(prefix);
    if (relative.empty() || *relative.begin() == "..") return {};
    return fail_input("this file is inside the prefix", "the build hides the files there", file.string(),
                      "Use a file outside the prefix.");
}

namespace {

std::unexpected<Error> cannot_lock(std::string what, const fs::path& directory) {
    auto error = fail_errno(std::move(what), directory.string());
    error.error().fault = Fault::input;
    error.error().hint =
        manifest::is_installation(directory)
            ? "Nothing was changed. The installation's owner can change it, if its directory "
              "is writable."
            : "Choose a prefix that you can write to.";
    return error;
}

/// " (process N on HOST)", the holder of the directory's lock in /proc/locks; empty if it is not listed.
std::string holder_of(const Fd& directory) {
    struct stat info {};
    if (fstat(directory.get(), &info) != 0) return {};
    std::ifstream locks("/proc/locks"); // "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF"
    for (std::string line; std::getline(locks, line);) {
        std::istringstream words(line);
        std::string number, kind, mode, access, process, file;
        words >> number >> kind >> mode >> access >> process >> file;
        // Do not compare the device: on some filesystems stat() reports another one.
        if (kind != "FLOCK" || access != "WRITE" || !file.ends_with(":" + std::to_string(info.st_ino)) ||
            process.starts_with('-') || process == "0")
            continue;
        std::array<char, 256> host{};
        gethostname(host.data(), host.size() - 1);
        return " (process " + process + " on " + host.data() + ")";
    }
    return {};
}

std::unexpected<Error> locked_by_another(const fs::path& prefix, const Fd& directory) {
    // An existing installation can only be locked by a command that changes it.
    if (manifest::is_installation(prefix))
        return fail({.what = "another command is changing this installation" + holder_of(directory),
                     .where = prefix.string(),
                     .hint = "Wait for it to end."});
    return fail({.what = "another build is using this prefix" + holder_of(directory),
                 .where = prefix.string(),
                 .hint = "Wait for it to end, or choose another prefix."});
}

// Returns whether the directory had to be made.
Result<bool> make_own_directory(const fs::path& directory, CleanupProcess& cleanup) {
    if (quiet::exists(directory)) return false;
    cleanup.remove_directory_later(directory); // register first: the build may be killed right after mkdir()
    if (mkdir(directory.c_str(), mode_of_new_directories) == 0) return true;
    if (errno != EEXIST) return cannot_lock("cannot create the directory", directory);
    return false;
}

// Another build may have replaced the directory after we opened it.
bool is_same(const Fd& fd, const fs::path& path) {
    struct stat opened {};
    struct stat named {};
    return fstat(fd.get(), &opened) == 0 && stat(path.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

} // namespace

Result<PrefixLock> lock_prefix(const fs::path& prefix, CleanupProcess& cleanup) {
    std::vector<fs::path> missing;
    for (auto one = prefix.parent_path(); !quiet::exists(one); one = one.parent_path())
        missing.insert(missing.begin(), one);
    for (const auto& directory : missing)
        TRY(make_own_directory(directory, cleanup));
    auto made = TRY(make_own_directory(prefix, cleanup));
    if (access(prefix.c_str(), W_OK | X_OK) != 0) return cannot_lock("cannot write to the prefix", prefix);
    PrefixLock lock{.prefix = prefix, .existed = !made, .locked = false, .lock = {}};
    lock.lock.reset(open(prefix.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock.lock) return cannot_lock("cannot open the prefix", prefix);
    // Without such locks (NFS wants a file opened for writing) both builds go on, and the last rename wins.
    lock.locked = flock(lock.lock.get(), LOCK_EX | LOCK_NB) == 0;
    if (!lock.locked && errno == EWOULDBLOCK) return locked_by_another(prefix, lock.lock);
    if (!is_same(lock.lock, prefix)) return locked_by_another(prefix, lock.lock);
    if (lock.existed) TRY(check_maintainer(lock.lock, prefix));
    return lock;
}

} // namespace containerize::prefix
