#include "environments/image_cache.h"

#include "conda/package_cache.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "util/log.h"
#include "util/progress.h"
#include "util/shared_directory.h"
#include "util/timings.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::environments {

struct ImageCache {
    packages::PackageImages images;
    conda::CachePlaces places;
    bool is_limited; ///< not if it can only be read, nor for a site's: when users use that is not known
    FileLock lock;   ///< none where files cannot be locked
};

namespace {

/// How often unused files are looked for if nothing was added.
constexpr std::int64_t day = std::int64_t{24} * 60 * 60;

std::vector<packages::OthersImages> images_of_sites(const std::vector<conda::SiteCache>& caches) {
    std::vector<packages::OthersImages> all;
    for (const auto& cache : caches) {
        const auto found = conda::images_of_site(cache);
        for (const auto& directory : found.directories)
            all.push_back({.directory = directory, .owner = cache.owner});
        if (!found.obstacle.empty())
            log::warn("the site's cache " + cache.directory.string() + " is not used: " + found.obstacle);
    }
    return all;
}

/// Elsewhere, what is packed would be of no use to others.
Status check_filling(const fs::path& cache) {
    const auto foreign = find_foreign_below(cache, conda::images_in(cache));
    if (!foreign) return {};
    return fail_input("this cache of the site cannot be filled",
                      foreign->path + ": " + foreign->why + ", so others could replace what is packed",
                      cache.string(),
                      "Change the directory's permissions, or set CONTAINERIZE_CACHE to another one.");
}

Result<std::shared_ptr<ImageCache>> open_cache(const BuildContext& context) {
    const auto& site = context.options.site;
    const auto& environment = context.inputs.environment;
    const auto cache = TRY(conda::cache_directory(environment, site.cache));
    packages::ImagePlaces places{.directory = {}, .fallback = context.staging / "images"};
    TRY(make_directory(places.fallback, "cannot create a staging directory"));
    auto of_user = conda::places_in(cache, environment);
    const bool for_all = is_of_site(cache, site.site_caches);
    if (for_all) {
        TRY(check_filling(cache));
        of_user.images = cache;
    }
    places.directory = conda::images_in(of_user.images);
    const auto made = for_all ? conda::make_images_for_all(cache, context.options.umask_bits)
                              : conda::make_images(of_user.images);
    if (for_all)
        places.mode = 0644U & ~context.options.umask_bits;
    else
        places.others = images_of_sites(site.site_caches);
    FileLock lock;
    if (!made) {
        log::detail(to_string(made.error()));
        places.directory = places.fallback;
    } else if (auto locked = packages::lock_for_reading(places.directory)) {
        lock = std::move(*locked);
    } else if (interrupted()) {
        return fail_interrupted();
    } else {
        log::detail(to_string(locked.error()));
    }
    return std::make_shared<ImageCache>(ImageCache{.images = packages::PackageImages(std::move(places)),
                                                   .places = std::move(of_user),
                                                   .is_limited = lock.file && !for_all,
                                                   .lock = std::move(lock)});
}

/// Whether images were added since the limits were last applied, or that was long ago.
bool is_due(const fs::path& images, const Fd& lock, const CacheLimits& limits) {
    struct stat added {};
    struct stat applied {};
    if (fstat(lock.get(), &applied) != 0 || stat(images.c_str(), &added) != 0) return true;
    const bool has_more = std::pair(added.st_mtim.tv_sec, added.st_mtim.tv_nsec) >
                          std::pair(applied.st_mtim.tv_sec, applied.st_mtim.tv_nsec);
    return (limits.bytes && has_more) || applied.st_mtim.tv_sec + day < std::time(nullptr);
}

} // namespace

Result<packages::PackageImages> open_images(const BuildContext& context) {
    if (!context.image_cache) context.image_cache = TRY(open_cache(context));
    return context.image_cache->images;
}

packages::ImageKey image_key(const BuildContext& context, std::string sha256, std::string part) {
    return {.archive = std::move(sha256),
            .part = std::move(part),
            .compression = context.options.compression,
            .block_size = context.options.block_size};
}

image::WriterOptions options_of_images(const BuildContext& context) {
    // One thread unpacks about as fast as four compress.
    return {.jobs = std::min(context.jobs, 4U), .memory = context.memory_of_writer() / context.jobs};
}

void apply_cache_limits(const BuildContext& context) {
    const auto cache = std::exchange(context.image_cache, nullptr);
    const auto& limits = context.options.site.cache_limits;
    if (!cache || !cache->is_limited || (!limits.bytes && !limits.age)) return;
    if (!is_due(conda::images_in(cache->places.images), cache->lock.file, limits)) return;
    // Also for the build's processes that have inherited the descriptor.
    flock(cache->lock.file.get(), LOCK_UN);
    const timings::Span span("Limiting the cache");
    const auto removed = apply_limits(cache->places, limits);
    if (!removed) return log::detail(to_string(removed.error()));
    log::detail(fmt::format("removed {}, {}, from the cache, because of its limits",
                            counted(removed->files, "file"), human_bytes(removed->bytes)));
}

std::vector<CachedFile> limited_files(const conda::CachePlaces& places) {
    auto files = conda::archives_in(places.shared);
    std::ranges::move(packages::image_files_in(conda::images_in(places.images)), std::back_inserter(files));
    return files;
}

Result<RemovedPackages> apply_limits(const conda::CachePlaces& places, const CacheLimits& limits) {
    const auto directory = conda::images_in(places.images);
    const auto lock = packages::try_lock_for_removing(directory);
    RemovedPackages removed{.in_use = !lock || lock->state != LockState::held};
    const auto now = std::int64_t{std::time(nullptr)};
    std::optional<std::int64_t> in_use_since;
    if (removed.in_use) in_use_since = now - day;
    for (const auto& file : files_to_remove(limited_files(places), limits, now, in_use_since)) {
        if (unlink(file.path.c_str()) != 0) {
            if (errno == ENOENT) continue;
            return fail_errno("cannot remove a file of the cache", file.path.string());
        }
        ++removed.files;
        removed.bytes += file.bytes;
    }
    if (lock && lock->file) futimens(lock->file.get(), nullptr); // for is_due()
    return removed;
}

bool is_of_site(const fs::path& cache, const std::vector<conda::SiteCache>& site_caches) {
    return std::ranges::any_of(site_caches, [&](const conda::SiteCache& one) {
        std::error_code missing;
        return fs::equivalent(cache, one.directory, missing);
    });
}

} // namespace containerize::environments
