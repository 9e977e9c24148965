#include "packages/package_images.h"

#include "core/entries.h"
#include "core/fd.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/open_file.h"
#include "core/ownership.h"
#include "core/read_write.h"
#include "core/text.h"
#include "util/digest.h"
#include "util/in_parallel.h"
#include "util/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::packages {

namespace {

namespace fs = std::filesystem;

/// Increased when the same package would give another image.
constexpr int format = 1;
constexpr std::string_view suffix = ".sqfs";
constexpr std::string_view unfinished = ".new-";
constexpr std::string_view lock_file = ".lock";

/// Environments have hundreds of packages, which share the memory for decompressed data.
constexpr std::size_t readers_at_once = 64;

/// What follows the squashfs image in the file. Other programs ignore it.
struct Trailer {
    std::array<char, 16> magic{};
    std::array<char, 64> digest{}; ///< sha256 of all that is before the trailer, in hexadecimal
};
constexpr std::array<char, 16> trailer_magic = {'p', 'a', 'c', 'k', 'a', 'g', 'e', ' ',
                                                'i', 'm', 'a', 'g', 'e', ' ', '1', '\n'};

Result<std::string> digest_of(int file, std::uint64_t size, const fs::path& path) {
    Sha256 digest;
    std::vector<std::byte> buffer(1U << 20U);
    for (std::uint64_t done = 0; done < size;) {
        const auto wanted = std::min<std::uint64_t>(buffer.size(), size - done);
        const auto got = read_all_at(file, buffer.data(), wanted, static_cast<off_t>(done));
        if (got < 0) return fail_errno("cannot read the package image", path.string());
        if (static_cast<std::uint64_t>(got) != wanted)
            return fail({.what = "the package image became shorter", .where = path.string()});
        digest.update(buffer.data(), wanted);
        done += wanted;
    }
    return digest.finish();
}

/// Whether the file is as it was when it was made.
bool is_whole(int file, std::uint64_t size, const fs::path& path) {
    Trailer trailer;
    if (size < sizeof trailer) return false;
    const std::uint64_t end = size - sizeof trailer;
    if (read_all_at(file, &trailer, sizeof trailer, static_cast<off_t>(end)) != sizeof trailer) return false;
    if (trailer.magic != trailer_magic) return false;
    const auto digest = digest_of(file, end, path);
    return digest && std::ranges::equal(*digest, trailer.digest);
}

Status add_trailer(const fs::path& path, mode_t mode) {
    const Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    struct stat info {};
    // Whatever the umask: open_image() refuses what others could change.
    if (!file || fchmod(file.get(), mode) != 0 || fstat(file.get(), &info) != 0)
        return fail_errno("cannot finish the package image", path.string());
    const auto size = static_cast<std::uint64_t>(info.st_size);
    const auto digest = TRY(digest_of(file.get(), size, path));
    Trailer trailer{.magic = trailer_magic};
    std::ranges::copy(digest, trailer.digest.begin());
    if (!write_all_at(file.get(), {reinterpret_cast<const char*>(&trailer), sizeof trailer}, info.st_size))
        return fail_errno("cannot finish the package image", path.string());
    return {};
}

/// A name that no other process uses: nodes and PID namespaces that share the cache have equal process IDs.
Result<fs::path> unfinished_in(const fs::path& directory) {
    std::array<std::uint64_t, 2> random{};
    if (getentropy(random.data(), sizeof random) != 0)
        return fail_errno("cannot choose a name for the package image", directory.string());
    return directory / fmt::format("{}{:016x}{:016x}", unfinished, random[0], random[1]);
}

/// Whether it is of this user only, or of those who are trusted besides: nobody else decides what is
/// installed.
bool is_trusted(const struct stat& info, std::optional<uid_t> other) {
    const bool owned = other ? is_of(info, *other) : info.st_uid == geteuid();
    return owned && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

struct Opened {
    Fd file;
    std::uint64_t size = 0;
};
Opened open_image(const fs::path& path, std::optional<uid_t> other = {}) {
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
    if (!is_trusted(info, other)) return {};
    return {.file = std::move(file), .size = static_cast<std::uint64_t>(info.st_size)};
}

bool is_image(const fs::path& path) {
    return path.extension() == suffix && is_hex(path.filename().string().substr(0, 64), 64);
}

bool is_unfinished(const fs::path& path) {
    return path.filename().string().starts_with(unfinished);
}

/// Where users share the cache, another one may have put a link to somewhere else here.
bool is_trusted_place(const fs::path& directory, std::optional<uid_t> other = {}) {
    struct stat place {};
    return lstat(directory.c_str(), &place) == 0 && S_ISDIR(place.st_mode) && is_trusted(place, other);
}

/// Those of this user, or those that can be read of users who are trusted besides.
template<class Visit>
void each_file(const fs::path& directory, std::optional<uid_t> other, const Visit& visit) {
    if (!is_trusted_place(directory, other)) return;
    std::error_code ignored;
    for (const auto& entry : entries_in(directory, ignored)) {
        struct stat info {};
        const bool owned = lstat(entry.path().c_str(), &info) == 0 &&
                           (other ? is_of(info, *other) && access(entry.path().c_str(), R_OK) == 0
                                  : info.st_uid == geteuid());
        if (owned && S_ISREG(info.st_mode)) visit(entry.path(), info);
    }
}

ImagesUse use_of(const fs::path& directory, std::optional<uid_t> other) {
    ImagesUse use;
    each_file(directory, other, [&](const fs::path& path, const struct stat& info) {
        if (!is_image(path) && !is_unfinished(path)) return;
        ++use.files;
        use.bytes += static_cast<std::uint64_t>(info.st_size);
    });
    return use;
}

Result<Verified> verify(const fs::path& directory, std::optional<uid_t> other, unsigned jobs) {
    std::vector<fs::path> paths;
    each_file(directory, other, [&](const fs::path& path, const struct stat&) {
        if (is_image(path)) paths.push_back(path);
    });
    Verified verified;
    std::mutex mutex;
    TRY(in_parallel(jobs, paths.size(), [&](std::size_t i) -> Status {
        if (interrupted()) return fail_interrupted();
        auto [file, size] = open_image(paths[i], other);
        const bool good = file && is_whole(file.get(), size, paths[i]);
        if (!good && !other) unlink(paths[i].c_str());
        const std::lock_guard lock(mutex);
        if (!good) verified.damaged.push_back(paths[i]);
        verified.good.files += good ? 1 : 0;
        verified.good.bytes += good ? size : 0;
        return {};
    }));
    std::ranges::sort(verified.damaged);
    return verified;
}

} // namespace

std::string ImageKey::file_name() const {
    return fmt::format("{}{}{}-{}-{}K.{}{}", archive, part.empty() ? "" : "-", part,
                       image::name_of(compression), block_size >> 10U, format, suffix);
}

std::unique_ptr<image::Reader> PackageImages::find_own(const fs::path& path) const {
    auto [file, size] = open_image(path);
    if (!file) return nullptr;
    if (is_whole(file.get(), size, path)) {
        futimens(file.get(), nullptr); // the time of the last use
        // It was made before the cache became that of a site.
        if ((places_.mode & S_IROTH) != 0) fchmod(file.get(), places_.mode);
        if (auto reader = image::Reader::open(std::move(file), path, readers_at_once))
            return std::move(*reader);
    }
    log::detail("the package image is damaged, and is made again: " + path.string());
    unlink(path.c_str());
    return nullptr;
}

std::unique_ptr<image::Reader> PackageImages::find_other(const fs::path& path, uid_t owner) {
    auto [file, size] = open_image(path, owner);
    if (!file) return nullptr;
    if (is_whole(file.get(), size, path))
        if (auto reader = image::Reader::open(std::move(file), path, readers_at_once))
            return std::move(*reader);
    log::warn(path.string() + ": this package image of the site is damaged, and not used. Tell whoever "
                              "maintains the site's cache.");
    return nullptr;
}

std::unique_ptr<image::Reader> PackageImages::find(const ImageKey& key) const {
    const auto name = key.file_name();
    if (auto found = find_own(places_.directory / name)) return found;
    for (const auto& [directory, owner] : places_.others)
        if (auto found = find_other(directory / name, owner)) return found;
    return find_own(places_.fallback / name);
}

Result<std::unique_ptr<image::Reader>> PackageImages::make_in(const fs::path& directory, const ImageKey& key,
                                                              image::WriterOptions options,
                                                              const Fill& fill) const {
    // Several images are made at once. Where few threads are left, each is made by one, with the same bytes.
    const auto create = [&](const fs::path& path) {
        auto writer = image::Writer::create(path, options);
        if (writer || options.jobs == 1 || interrupted()) return writer;
        options.jobs = 1;
        return image::Writer::create(path, options);
    };
    const auto path = TRY(unfinished_in(directory));
    const auto made = [&]() -> Status {
        auto writer = TRY(create(path));
        TRY(fill(writer));
        TRY(writer.finish());
        return add_trailer(path, places_.mode);
    }();
    if (!made) {
        unlink(path.c_str());
        return fail(made.error());
    }
    auto [file, size] = open_image(path);
    const auto name = directory / key.file_name();
    if (!file || rename(path.c_str(), name.c_str()) != 0) {
        const int error_number = errno;
        unlink(path.c_str());
        return fail_errno("cannot keep the package image", name.string(), error_number);
    }
    return image::Reader::open(std::move(file), name, readers_at_once);
}

Result<std::unique_ptr<image::Reader>> PackageImages::make(const ImageKey& key, image::WriterOptions options,
                                                           const Fill& fill) const {
    options.compression = key.compression;
    options.block_size = key.block_size;
    auto made = make_in(places_.directory, key, options, fill);
    if (made || interrupted()) return made;
    // The cache may have no room, or be on a filesystem that fails. Any other reason remains.
    log::detail("the cache cannot be used: " + to_string(made.error()));
    return make_in(places_.fallback, key, options, fill);
}

Result<FileLock> lock_for_reading(const fs::path& directory) {
    return wait_for_lock(directory / lock_file, 0600, LockKind::shared);
}

Result<FileLock> try_lock_for_removing(const fs::path& directory) {
    if (!is_trusted_place(directory))
        return fail({.what = "these are no package images of yours", .where = directory.string()});
    return try_lock(directory / lock_file, 0600);
}

ImagesUse images_in(const fs::path& directory) {
    return use_of(directory, {});
}

ImagesUse images_in(const OthersImages& others) {
    return use_of(others.directory, others.owner);
}

std::vector<CachedFile> image_files_in(const fs::path& directory) {
    std::vector<CachedFile> found;
    each_file(directory, {}, [&](const fs::path& path, const struct stat& info) {
        if (is_image(path))
            found.push_back({.path = path,
                             .bytes = static_cast<std::uint64_t>(info.st_size),
                             .last_use = info.st_mtim.tv_sec});
    });
    return found;
}

Result<RemovedImages> remove_images(const fs::path& directory, std::chrono::hours unused) {
    if (!is_trusted_place(directory)) return RemovedImages{};
    const auto lock = try_lock_for_removing(directory);
    const bool in_use = !lock || lock->state != LockState::held;
    if (in_use) unused = std::max(unused, longest_build);
    ImagesUse removed;
    Status failed;
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(unused).count();
    each_file(directory, {}, [&](const fs::path& path, const struct stat& info) {
        const bool left_over = is_unfinished(path);
        if (!left_over && !is_image(path)) return;
        // A build that runs writes to its files.
        const auto age = now - info.st_mtim.tv_sec;
        if (age < (left_over ? 3600 : seconds)) return;
        if (unlink(path.c_str()) != 0 && errno != ENOENT) {
            failed = fail_errno("cannot remove the package image", path.string());
            return;
        }
        ++removed.files;
        removed.bytes += static_cast<std::uint64_t>(info.st_size);
    });
    if (!failed) return fail(std::move(failed.error()));
    return RemovedImages{.removed = removed, .in_use = in_use};
}

Result<Verified> verify_images(const fs::path& directory, unsigned jobs) {
    return verify(directory, {}, jobs);
}

Result<Verified> verify_images(const OthersImages& others, unsigned jobs) {
    return verify(others.directory, others.owner, jobs);
}

} // namespace containerize::packages
