#include "container/host_root.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "launch/root_key.h"

#include <algorithm>
#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize::container {

namespace {

struct Entry {
    std::string name;
    char type = 'd';    ///< 'd' directory, 'f' file, 'l' link
    std::string target; ///< of a link
};

std::vector<Entry> entries_of_root() {
    std::vector<Entry> entries;
    for (const auto& name : names_in("/")) {
        Entry entry{.name = name, .target = {}};
        const std::string path = "/" + name;
        struct stat info {};
        // What cannot even be examined, such as another user's FUSE mount, cannot be bound either.
        if (lstat(path.c_str(), &info) != 0) continue;
        if (S_ISLNK(info.st_mode)) {
            std::error_code failed;
            entry.type = 'l';
            entry.target = fs::read_symlink(path, failed).string();
            if (failed) continue;
        } else if (S_ISREG(info.st_mode)) {
            entry.type = 'f';
        } else if (!S_ISDIR(info.st_mode)) {
            continue;
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

std::string directory_name(const std::vector<Entry>& entries) {
    std::string text;
    for (const auto& entry : entries)
        text += entry.type + entry.name + '\0' + entry.target + '\0';
    return std::string(host_root_start) + launch::short_hash(text);
}

bool is_there(const fs::path& directory, const Entry& entry) {
    struct stat info {};
    return lstat((directory / entry.name).c_str(), &info) == 0;
}

/// Whatever the umask is.
bool make_directory(const fs::path& path) {
    return mkdir(path.c_str(), 0755) == 0 && chmod(path.c_str(), 0755) == 0;
}

bool make_entry(const fs::path& directory, const Entry& entry) {
    const auto path = directory / entry.name;
    if (entry.type == 'l') return symlink(entry.target.c_str(), path.c_str()) == 0;
    if (entry.type == 'd') return make_directory(path);
    return mknod(path.c_str(), S_IFREG | 0644, 0) == 0;
}

// Adds what is missing and removes nothing: a removed mount point would take a running program's mounts
// along.
Status complete(const fs::path& directory, const std::vector<Entry>& entries) {
    const auto cannot = [](const fs::path& path) {
        return fail_errno("cannot create a root directory for the container runtime", path.string());
    };
    if (!make_directory(directory) && errno != EEXIST) return cannot(directory);
    for (const auto& entry : entries)
        if (!is_there(directory, entry) && !make_entry(directory, entry))
            return cannot(directory / entry.name);
    return {};
}

} // namespace

Result<HostRoot> make_host_root(const launch::StateDirectory& state) {
    const auto entries = entries_of_root();
    HostRoot root{.directory = fs::path(state.path) / directory_name(entries), .names = {}};
    for (const auto& entry : entries) {
        const bool is_of_runtime = entry.name == "dev" || entry.name == "proc" || entry.name == "sys";
        if (entry.type != 'l' && !is_of_runtime) root.names.push_back("/" + entry.name);
    }
    // A cleaner of /tmp may have removed some of it.
    const auto whole = [&] {
        return std::ranges::all_of(entries,
                                   [&](const Entry& entry) { return is_there(root.directory, entry); });
    };
    if (whole()) return root;
    // Other ranks may be about to make the same.
    const auto lock = TRY(launch::lock_starts(state));
    TRY(complete(root.directory, entries));
    return root;
}

} // namespace containerize::container
