#include "mounts/staged_image.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/resources.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <vector>

#include <fcntl.h>
#include <nettle/sha2.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace containerize::mounts {

namespace {

// As large as the largest stripes and blocks of parallel filesystems.
constexpr std::size_t request_size = std::size_t{16} << 20U;

/// Nettle's: OpenSSL's would make the session program, which is copied to every installation, half as large
/// again.
class Sha256 {
public:
    Sha256() { sha256_init(&state_); }
    void update(const char* data, std::size_t size) {
        sha256_update(&state_, size, reinterpret_cast<const std::uint8_t*>(data));
    }
    std::string finish() {
        std::array<std::uint8_t, SHA256_DIGEST_SIZE> bytes{};
        sha256_digest(&state_, bytes.size(), bytes.data());
        static constexpr std::string_view digits = "0123456789abcdef";
        std::string text;
        for (const auto byte : bytes)
            text.append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
        return text;
    }

private:
    sha256_ctx state_{};
};

std::unexpected<Error> no_room(const std::filesystem::path& path, std::uint64_t size, std::uint64_t left) {
    return fail({.what = "the image is too large for a copy on this node",
                 .why = "it has " + std::to_string(size) + " bytes, and half of the free space is " +
                        std::to_string(left / 2),
                 .where = path.string(),
                 .hint = {}});
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

Status write_all(const Fd& file, const char* data, std::size_t size) {
    while (size > 0) {
        const auto done = write(file.get(), data, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno("cannot write the copy of the image");
        data += done;
        size -= static_cast<std::size_t>(done);
    }
    return {};
}

using Sink = std::function<Status(const char*, std::size_t)>;

/// Reads all of it once, passes it to `sink`, and compares the digest.
Status read_verified(const Fd& from, const std::filesystem::path& path, std::uint64_t size,
                     const std::string& sha256, const Sink& sink) {
    posix_fadvise(from.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    Sha256 digest;
    std::vector<char> buffer(request_size);
    for (std::uint64_t done = 0; done < size;) {
        if (interrupted()) return fail_interrupted();
        const auto wanted = std::min<std::uint64_t>(buffer.size(), size - done);
        const auto got = pread(from.get(), buffer.data(), wanted, static_cast<off_t>(done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("cannot read the image", path.string());
        if (got == 0) break;
        const auto bytes = static_cast<std::size_t>(got);
        digest.update(buffer.data(), bytes);
        if (auto taken = sink(buffer.data(), bytes); !taken) return taken;
        done += bytes;
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
    const char* given = std::getenv("TMPDIR");
    return given == nullptr || given[0] != '/' ? "/tmp" : given;
}

Result<Fd> stage_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                       const std::string& sha256, manifest::StagePlace place) {
    auto file = place == manifest::StagePlace::ram ? file_in_memory(path, size) : file_on_disk(path, size);
    if (!file) return file;
    const auto written = [&](const char* data, std::size_t bytes) { return write_all(*file, data, bytes); };
    if (auto copied = read_verified(image, path, size, sha256, written); !copied)
        return fail(std::move(copied.error()));
    return file;
}

Status verify_image(const Fd& image, const std::filesystem::path& path, std::uint64_t size,
                    const std::string& sha256) {
    return read_verified(image, path, size, sha256, [](const char*, std::size_t) { return Status(); });
}

} // namespace containerize::mounts
