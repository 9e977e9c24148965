// Files, directories and mounts: what std::filesystem does not do, or not safely.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

namespace containerize {

namespace fs = std::filesystem;

/// The functions of std::filesystem without exceptions: what cannot be examined is taken for missing.
namespace quiet {

inline bool exists(const fs::path& path) {
    std::error_code failed;
    return fs::exists(path, failed);
}
inline bool is_directory(const fs::path& path) {
    std::error_code failed;
    return fs::is_directory(path, failed);
}
inline bool is_regular_file(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed);
}

} // namespace quiet

/// What this program makes may be changed by its group if the umask allows that, and never by others, even if
/// the umask or a directory's default access list allows it: launches refuse such installations.
inline constexpr mode_t mode_of_new_files = 0664;
inline constexpr mode_t mode_of_new_directories = 0775;

Result<std::string> read_file(const fs::path& path, std::uint64_t limit = 64U << 20U);

/// The same for a file that the user gave: a failure is an input error.
Result<std::string> read_input_file(const fs::path& path, std::uint64_t limit = 64U << 20U);

/// Whether nobody but this user and root can change the content, by the file's owner and mode.
bool is_ours_alone(const struct stat& info);

/// Replaces `path` atomically, by writing, syncing and renaming another file. The mode is `mode_of_new_files`
/// (`mode_of_new_directories` if `executable`) less the umask.
Status write_file(const fs::path& path, std::string_view content, bool executable = false);

/// Whether both exist and have the same content.
bool same_content(const fs::path& one, const fs::path& other);

/// Creates a directory in one that exists, unless it exists already. `failure` is what an error says.
Status make_directory(const fs::path& directory, const char* failure = "cannot create a directory");
/// Creates a directory, and those above it that are missing.
Status make_directories(const fs::path& directory, const char* failure = "cannot create a directory");

/// Syncs a file, so that its content lasts.
Status sync_file(const fs::path& path);

/// Syncs a directory, so that a rename in it lasts. Filesystems that cannot do this are no error.
Status sync_directory(const fs::path& directory);

/// Deletes a tree, and makes its own directories accessible on the way if necessary; never follows links,
/// never crosses mounts. Deletes as much as it can, and returns the first failure.
Status remove_tree(const fs::path& path);

/// "lustre", "nfs", "gpfs", "beegfs", "ext4", "tmpfs", ... of the nearest existing ancestor of `path`;
/// "unknown" if it cannot be found out.
std::string filesystem_type(const fs::path& path);
bool is_network_filesystem(std::string_view type);
/// The type of the mounts that our servers answer.
inline constexpr const char* own_fuse_type = "fuse.containerize";
struct Mounted {
    std::string root; ///< what of the filesystem is shown, as a path in it
    std::string point, type, source, options;
    dev_t device; ///< st_dev of the files in it
};
/// The mounts that this process sees, as a rule the earliest first. `proc` replaces "/proc", for tests.
std::vector<Mounted> mounted_filesystems(const fs::path& proc = "/proc");
/// The mount points at `path` and below; a point appears once for each mount on it.
std::vector<std::string> mount_points_below(const fs::path& path);

/// The absolute path with `.`, `..` and links resolved, as far as it exists. Fails with an input error.
Result<fs::path> resolve(const fs::path& path);

/// Whether `path` is `directory` or below it, by the names alone.
bool is_below(const fs::path& path, const fs::path& directory);
/// Whether `path` is relative, not empty, and has no "..", by the names alone.
bool stays_below(const fs::path& path);

/// The longest path that a package may contain.
inline constexpr std::size_t longest_path = 4000;
/// The path of a file in a package, without "." and repeated '/'; empty if it is invalid or leads out of the
/// package.
std::string clean_path(std::string_view path);

/// Whether no program can be started from a file at `path`, or at its nearest existing directory, because the
/// filesystem is mounted noexec.
bool is_noexec(const fs::path& path);

/// Bytes that this user can still write to the filesystem of `path`. Fails for filesystems without a size.
Result<std::uint64_t> available_bytes(const fs::path& path);

} // namespace containerize
