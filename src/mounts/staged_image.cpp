#include "mounts/staged_image.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/read_write.h"
#include "core/resources.h"
#include "core/variables.h"
#include "util/digest.h"

#include <cstdlib>
#include <functional>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace containerize::mounts {

namespace {

// As large as the largest stripes and blocks of parallel filesystems.
constexpr std::size_t request_size = std::size_t{16} << 20U;

std::unexpected<Error> no_room(const std::filesystem::path& path, std::uint64_t size, std::uint64_t left) {
    return fail({.what = "the image is too large for a copy on this node",
                 .why = "it has " + std::to_string(size) + " bytes, and half of the free space is " +
                        std::to_string(left / 2),
                 .where = path.string()});
}

Result<Fd> file_in_memory(const std::filesystem::path& path, std::uint64_t size) {
    const auto left = available_resources().memory;
    if (size > left / 2) return no_room(path, size, left);
    Fd file(memfd_create("containerize-image", MFD_CLOEXEC));
    if (!file) return fail_errno("cannot create a file in memory");
    return file;
}

Result<Fd> file_on_disk(const std::filesystem::path& path, std::uint64_t size) {
    const auto directory = local_directory();
    if (const auto type = filesystem_type(directory); is_network_filesystem(type))
        return fail({.what = "the directory for a copy of the image is not on this node",
                     .why = "it is on " + type,
                     .where = directory,
                     .hint = "Set TMPDIR to a directory on a local disk of this node."});
    struct statvfs room {};
    if (statvfs(directory.c_str(), &room) != 0) return fail_errno("cannot examine the directory", directory);
    const auto left = std::uint64_t{room.f_bavail} * room.f_frsize;
    if (size > left / 2) return no_room(path, size, left);
    Fd file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file) return file;
    // Not every filesystem supports O_TMPFILE.
    std::string name = directory + "/containerize-image-XXXXXX";
    file.reset(mkostemp(name.data(), O_CLOEXEC));
    if (!file) return fail_errno("cannot create a file", directory);
    unlink(name.c_str());
    return file;
}

using Sink = std::function<Status(std::string_view)>;

/// Reads all of it once, passes it to `sink`, and compares the digest.
Status read_verified(const Fd& from, const std::filesystem::path& path, std::uint64_t size,
                     const std::string& sha256, const Sink& sink) {
    posix_fadvise(from.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    Sha256 digest;
    std::vector<char> buffer(request_size);
    for (std::uint64_t done = 0; done < size;) {
        if (interrupted()) return fail_interrupted();
        const auto wanted = std::min<std::uint64_t>(buffer.size(), size - done);
        const auto got = read_all_at(from.get(), buffer.data(), wanted, static_cast<off_t>(done));
        if (got < 0) return fail_errno("cannot read the image", path.string());
        if (got == 0) break;
        const std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
        digest.update(piece.data(), piece.size());
        TRY(sink(piece));
        done += piece.size();
    }
    if (const auto found = digest.finish(); found != sha256)
        return fail(
            {.what = "the copy of the image differs from the image that was built",
             .why = "its sha256 is " + found + ", and the manifest says " + sha256,
             .where = path.string(),
             .hint = "Build the installation again with `containerize new --force`, or copy it again."});
    return {};
}

} // namespace

std::string local_directory() {
    const char* given = value_of("TMPDIR");
    return given == nullptr || given[0] != '/' ? "/tmp" : given;
}

Result<Fd> stage_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                       const std::string& sha256, manifest::StagePlace place) {
    auto file = place == manifest::StagePlace::ram ? file_in_memory(path, size) : file_on_disk(path, size);
    if (!file) return file;
    const auto written = [&](std::string_view piece) -> Status {
        if (write_all(file->get(), piece)) return {};
        return fail_errno("cannot write the copy of the image");
    };
    TRY(read_verified(image, path, size, sha256, written));
    return file;
}

Status verify_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                    const std::string& sha256) {
    return read_verified(image, path, size, sha256, [](std::string_view) { return Status(); });
}

} // namespace containerize::mounts
