#include "packages/package_images.h"

#include "core/entries.h"
#include "core/fd.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/open_file.h"
#include "core/read_write.h"
#include "core/text.h"
#include "util/digest.h"
#include "util/in_parallel.h"
#include "util/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
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

Status add_trailer(const fs::path& path) {
    const Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    struct stat info {};
    // Whatever the umask: open_image() refuses what others could change.
    if (!file || fchmod(file.get(), 0600) != 0 || fstat(file.get(), &info) != 0)
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

/// Of this user only: nobody else decides what is installed.
struct Opened {
    Fd file;
    std::uint64_t size = 0;
};
Opened open_image(const fs::path& path) {
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
    if (info.st_uid != geteuid() || !is_ours_alone(info)) return {};
    return {.file = std::move(file), .size = static_cast<std::uint64_t>(info.st_size)};
}

bool is_image(const fs::path& path) {
    return path.extension() == suffix && is_hex(path.filename().string().substr(0, 64), 64);
}

bool is_unfinished(const fs::path& path) {
    return path.filename().string().starts_with(unfinished);
}

/// Those of this user.
template<class Visit>
void each_file(const fs::path& directory, const Visit& visit) {
    // Where users share the cache, another one may have put a link to somewhere else here.
    struct stat place {};
    if (lstat(directory.c_str(), &place) != 0 || !S_ISDIR(place.st_mode) || place.st_uid != geteuid() ||
        !is_ours_alone(place))
        return;
    std::error_code ignored;
    for (const auto& entry : entries_in(directory, ignored)) {
        struct stat info {};
        if (lstat(entry.path().c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid())
            visit(entry.path(), info);
    }
}

} // namespace

std::string ImageKey::file_name() const {
    return fmt::format("{}{}{}-{}-{}K.{}{}", archive, part.empty() ? "" : "-", part,
                       image::name_of(compression), block_size >> 10U, format, suffix);
}

PackageImages::PackageImages(fs::path directory, fs::path fallback)
    : directory_(std::move(directory)), fallback_(std::move(fallback)) {}

std::unique_ptr<image::Reader> PackageImages::find(const ImageKey& key) const {
    for (const auto& directory : {directory_, fallback_}) {
        const auto path = directory / key.file_name();
        auto [file, size] = open_image(path);
        if (!file) continue;
        if (is_whole(file.get(), size, path)) {
            futimens(file.get(), nullptr); // for remove_images()
            if (auto reader = image::Reader::open(std::move(file), path, readers_at_once))
                return std::move(*reader);
        }
        log::detail("the package image is damaged, and is made again: " + path.string());
        unlink(path.c_str());
    }
    return nullptr;
}

Result<std::unique_ptr<image::Reader>> PackageImages::make(const ImageKey& key, image::WriterOptions options,
                                                           const Fill& fill) const {
    options.compression = key.compression;
    options.block_size = key.block_size;
    // Several images are made at once. Where few threads are left, each is made by one, with the same bytes.
    const auto create = [&](const fs::path& path) {
        auto writer = image::Writer::create(path, options);
        if (writer || options.jobs == 1 || interrupted()) return writer;
        options.jobs = 1;
        return image::Writer::create(path, options);
    };
    const auto make_in = [&](const fs::path& directory) -> Result<std::unique_ptr<image::Reader>> {
        const auto path = TRY(unfinished_in(directory));
        const auto made = [&]() -> Status {
            auto writer = TRY(create(path));
            TRY(fill(writer));
            TRY(writer.finish());
            return add_trailer(path);
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
    };
    auto made = make_in(directory_);
    if (made || interrupted()) return made;
    // The cache may have no room, or be on a filesystem that fails. Any other reason remains.
    log::detail("the cache cannot be used: " + to_string(made.error()));
    return make_in(fallback_);
}

ImagesUse images_in(const fs::path& directory) {
    ImagesUse use;
    each_file(directory, [&](const fs::path& path, const struct stat& info) {
        if (!is_image(path) && !is_unfinished(path)) return;
        ++use.files;
        use.bytes += static_cast<std::uint64_t>(info.st_size);
    });
    return use;
}

Result<ImagesUse> remove_images(const fs::path& directory, std::chrono::hours unused) {
    ImagesUse removed;
    Status failed;
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(unused).count();
    each_file(directory, [&](const fs::path& path, const struct stat& info) {
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
    return removed;
}

Result<Verified> verify_images(const fs::path& directory, unsigned jobs) {
    std::vector<fs::path> paths;
    each_file(directory, [&](const fs::path& path, const struct stat&) {
        if (is_image(path)) paths.push_back(path);
    });
    Verified verified;
    std::mutex mutex;
    TRY(in_parallel(jobs, paths.size(), [&](std::size_t i) -> Status {
        if (interrupted()) return fail_interrupted();
        auto [file, size] = open_image(paths[i]);
        const bool good = file && is_whole(file.get(), size, paths[i]);
        if (!good) unlink(paths[i].c_str());
        const std::lock_guard lock(mutex);
        if (!good) verified.damaged.push_back(paths[i]);
        verified.good.files += good ? 1 : 0;
        verified.good.bytes += good ? size : 0;
        return {};
    }));
    std::ranges::sort(verified.damaged);
    return verified;
}

} // namespace containerize::packages
