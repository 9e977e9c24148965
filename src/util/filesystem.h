// Files and directories: what std::filesystem does not do, or not safely.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <sys/stat.h>
#include <sys/types.h>

namespace containerize {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& path, std::uint64_t limit = 64U << 20U);

/// Whether nobody but this user and root can change the content, by the file's owner and mode.
bool is_ours_alone(const struct stat& info);

/// Written beside `path`, fsynced, renamed over it: readers see the old or the new content, never half.
/// Mode is 0666 (0777 if `executable`) less the umask.
Status write_file(const fs::path& path, std::string_view content, bool executable = false);

/// Copies in large sequential requests and fsyncs; `progress` gets the bytes done so far.
/// Returns the sha256 of what was written, in hexadecimal. Fails if `to` exists.
Result<std::string> copy_file_synced(const fs::path& from, const fs::path& to,
                                     const std::function<void(std::uint64_t)>& progress = {});

/// The same, but `from` is gone afterwards: within a filesystem nothing is copied.
Result<std::string> move_file_synced(const fs::path& from, const fs::path& to,
                                     const std::function<void(std::uint64_t)>& progress = {});

/// Copies with the permissions that the file has, less `umask_bits`. Fails if `to` exists.
Status copy_file_with_mode(const fs::path& from, const fs::path& to, mode_t umask_bits);

/// Whether both are there and have the same bytes.
bool same_content(const fs::path& one, const fs::path& other);

/// fsync, so that the content lasts.
Status sync_file(const fs::path& path);

/// fsync of a directory, so that a rename in it lasts. File systems that cannot do so are no error.
Status sync_directory(const fs::path& directory);

/// Deletes a tree, making unreadable directories writable on the way; never follows links, never crosses
/// mounts.
Status remove_tree(const fs::path& path);

/// "lustre", "nfs", "gpfs", "beegfs", "ext4", "tmpfs", ...; of the nearest existing ancestor of `path`.
std::string filesystem_type(const fs::path& path);
bool is_network_filesystem(std::string_view type);
struct Mounted {
    std::string point, type, source;
    dev_t device; ///< st_dev of what is in it
};
/// What this process sees mounted, as a rule the earliest first.
std::vector<Mounted> mounts();
/// What is mounted at `path` and below it, for this process; a path as often as something is mounted on it.
std::vector<std::string> mount_points_below(const fs::path& path);

/// Absolute, with `.` and `..` and links resolved as far as the path exists.
Result<fs::path> resolve(const fs::path& path);

/// By the names alone: whether `path` is `directory`, or below it.
bool is_below(const fs::path& path, const fs::path& directory);
/// By the names alone: whether a path is relative and never climbs above where it begins.
bool stays_below(const fs::path& path);

/// Bytes that this user can still write where `path` is.
Result<std::uint64_t> available_bytes(const fs::path& path);

/// A directory of our own for a build, on node-local storage, with a lock that says that it is in use.
/// Removed by the destructor. Those that a killed run left are removed by the next one (`sweep_staging`).
class Staging {
public:
    /// Made under `parent`; if that is empty under $TMPDIR or /tmp, or /dev/shm where those are on a network.
    static Result<Staging> create(const fs::path& parent);
    Staging(Staging&&) noexcept;
    Staging& operator=(Staging&&) noexcept;
    ~Staging();
    [[nodiscard]] const fs::path& path() const { return path_; }
    /// Leaves the directory where it is when this object dies.
    void keep() { kept_ = true; }

private:
    Staging(fs::path path, Fd lock);
    fs::path path_;
    Fd lock_;
    bool kept_ = false;
};

/// Removes this user's abandoned staging directories under `parent`; those in use are left.
void sweep_staging(const fs::path& parent);

} // namespace containerize
