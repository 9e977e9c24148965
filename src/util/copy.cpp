#include "util/copy.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/open_file.h"
#include "core/read_write.h"
#include "util/digest.h"

#include <future>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize {

namespace {

// Parallel file systems move whole stripes: 1 MiB is Lustre's smallest stripe, 16 MiB GPFS's largest block.
constexpr std::size_t request_size = std::size_t{16} << 20U;

using Progress = std::function<void(std::uint64_t)>;
using Use = std::function<Status(std::string_view piece)>;

/// The digest of the whole file. `use` gets each piece while another thread digests it.
Result<std::string> digest_of(int file, const fs::path& path, const Use& use, const Progress& progress) {
    posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    Sha256 digest;
    std::vector<char> buffer(request_size);
    for (std::uint64_t total = 0;;) {
        if (interrupted()) return fail_interrupted();
        const auto got = read_all(file, buffer.data(), buffer.size());
        if (got < 0) return fail_errno("cannot read the file", path.string());
        if (got == 0) return digest.finish();
        const std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
        const auto counted =
            std::async(std::launch::async, [&] { digest.update(piece.data(), piece.size()); });
        const auto used = use(piece);
        counted.wait();
        if (!used) return fail(Error(used.error()));
        total += piece.size();
        if (progress) progress(total);
    }
}

Result<std::string> copy(int source, const fs::path& from, int target, const fs::path& to,
                         const Progress& progress) {
    off_t written = 0;
    const auto put = [&](std::string_view piece) -> Status {
        if (!write_all(target, piece)) return fail_errno("cannot write the file", to.string());
        // Starts writing to the disk now, so that fsync() has little left to wait for.
        sync_file_range(target, written, static_cast<off_t>(piece.size()), SYNC_FILE_RANGE_WRITE);
        written += static_cast<off_t>(piece.size());
        return {};
    };
    auto digest = digest_of(source, from, put, progress);
    if (digest && fsync(target) != 0) return fail_errno("cannot write the file", to.string());
    return digest;
}

Result<std::string> copy_to_new_file(const fs::path& from, const fs::path& to, mode_t mode,
                                     const Progress& progress) {
    const auto source = TRY(open_regular(from));
    Fd target(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!target) return fail_errno("cannot write the file", to.string());
    auto digest = copy(source.get(), from, target.get(), to, progress);
    // NFS and quota errors can come as late as close.
    if (close(target.release()) != 0 && digest) digest = fail_errno("cannot write the file", to.string());
    if (!digest) unlink(to.c_str());
    return digest;
}

Result<std::string> sync_and_digest(const fs::path& path, const Progress& progress) {
    const auto file = TRY(open_regular(path));
    auto synced = std::async(std::launch::async, [&file] { return fsync(file.get()) == 0 ? 0 : errno; });
    const auto only_read = [](std::string_view) { return Status(); };
    auto digest = digest_of(file.get(), path, only_read, progress);
    if (const int error_number = synced.get(); error_number != 0)
        return fail_errno("cannot write the file", path.string(), error_number);
    return digest;
}

/// Whether `file` has the owners and permissions that it would have if it had been created in `directory`:
/// directories may pass on their group or an access list.
bool is_as_if_made_in(const fs::path& directory, const fs::path& file) {
    struct stat there {
    }, info{};
    if (stat(directory.c_str(), &there) != 0 || (there.st_mode & S_ISGID) != 0 ||
        getxattr(directory.c_str(), "system.posix_acl_default", nullptr, 0) > 0)
        return false;
    return lstat(file.c_str(), &info) == 0 && info.st_gid == getegid() &&
           getxattr(file.c_str(), "system.posix_acl_access", nullptr, 0) <= 0;
}

} // namespace

Result<std::string> move_file_synced(const fs::path& from, const fs::path& to, const Progress& progress) {
    if (is_as_if_made_in(to.parent_path(), from) &&
        renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
        return sync_and_digest(to, progress);
    auto digest = copy_file_synced(from, to, progress);
    if (digest) unlink(from.c_str());
    return digest;
}

Status sync_file(const fs::path& path) {
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file || fsync(file.get()) != 0) return fail_errno("cannot write the file", path.string());
    return {};
}

Result<std::string> copy_file_synced(const fs::path& from, const fs::path& to,
                                     const std::function<void(std::uint64_t)>& progress) {
    return copy_to_new_file(from, to, mode_of_new_files, progress);
}

Status copy_file_with_mode(const fs::path& from, const fs::path& to, mode_t umask_bits) {
    struct stat info {};
    if (stat(from.c_str(), &info) != 0) return fail_errno("cannot read the file", from.string());
    TRY(copy_to_new_file(from, to, 0600, {}));
    if (chmod(to.c_str(), info.st_mode & mode_of_new_directories & ~umask_bits) != 0)
        return fail_errno("cannot write the file", to.string());
    return {};
}

bool same_content(const fs::path& one, const fs::path& other) {
    std::error_code failed;
    const auto size = fs::file_size(one, failed);
    if (failed || fs::file_size(other, failed) != size || failed) return false;
    const auto first = read_file(one, size);
    const auto second = read_file(other, size);
    return first && second && *first == *second;
}

} // namespace containerize
