#include "conda/cache_directory.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "util/log.h"
#include "util/shared_directory.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::conda {

namespace {

Status usable(const fs::path& directory, std::string why) {
    if (why.empty()) return {};
    return fail({.what = "cannot use the cache",
                 .why = std::move(why),
                 .where = directory.string(),
                 .hint = "Set CONTAINERIZE_CACHE to another directory."});
}

/// Whether only this user can write to it.
bool is_own_directory(const fs::path& directory) {
    struct stat info {};
    return lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           is_ours_alone(info);
}

/// Creates a directory that other users cannot access, in one that they share.
Status make_own(const fs::path& directory) {
    auto why = make_shared_directory(directory.parent_path());
    if (why.empty()) why = make_private_directory(directory);
    return usable(directory, std::move(why));
}

/// The caches of this user without any setting, in order: where a variable names their place.
std::vector<fs::path> own_caches(const Environment& environment) {
    std::vector<fs::path> caches;
    for (const auto& [name, below] :
         {std::pair{Variable("XDG_CACHE_HOME"), "containerize"}, {Variable("HOME"), ".cache/containerize"}})
        if (const fs::path base = variable(environment, name); base.is_absolute())
            caches.push_back(base / below);
    return caches;
}

/// Gives our directory permissions that it lacks, and takes away those that nobody must have.
std::string permit(const fs::path& directory, mode_t wanted, mode_t unwanted = 0) {
    const Fd opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!opened || fstat(opened.get(), &info) != 0) return std::strerror(errno);
    const mode_t mode = ((info.st_mode | wanted) & ~unwanted) & 07777U;
    if (mode == (info.st_mode & 07777U) || fchmod(opened.get(), mode) == 0) return {};
    return std::strerror(errno);
}

} // namespace

fs::path packages_in(const fs::path& cache) {
    return cache / "packages";
}

fs::path wheels_in(const fs::path& cache) {
    return cache / "wheels";
}

fs::path repodata_in(const fs::path& cache) {
    return cache / "repodata" / std::to_string(geteuid());
}

fs::path images_in(const fs::path& cache) {
    return cache / "images" / std::to_string(geteuid());
}

fs::path uv_in(const fs::path& cache) {
    return cache / "uv" / std::to_string(geteuid());
}

fs::path environments_in(const fs::path& cache) {
    return cache / "exec" / std::to_string(geteuid());
}

Status make_shared(const fs::path& directory) {
    return usable(directory, make_shared_directory(directory));
}

Status make_repodata(const fs::path& cache) {
    return make_own(repodata_in(cache));
}

Status make_images(const fs::path& cache) {
    const auto directory = images_in(cache);
    // It may have been made for all.
    if (is_own_directory(directory) && access(directory.c_str(), W_OK | X_OK) == 0) return {};
    return make_own(directory);
}

Status make_images_for_all(const fs::path& cache, mode_t umask_bits) {
    const auto directory = images_in(cache);
    auto why = make_shared_directory(directory.parent_path());
    if (why.empty()) why = make_writable_directory(directory);
    const mode_t wanted = 0755U & ~umask_bits;
    if (why.empty()) why = permit(directory.parent_path(), wanted);
    if (why.empty()) why = permit(directory, wanted, S_IWGRP | S_IWOTH);
    return usable(directory, std::move(why));
}

SiteImages images_of_site(const SiteCache& cache) {
    SiteImages found;
    const auto images = cache.directory / "images";
    for (const auto& name : names_in(images)) {
        const auto directory = images / name;
        struct stat info {};
        if (const auto foreign = find_foreign(directory.string(), {.owner = cache.owner}))
            found.obstacle = foreign->path + ": " + foreign->why;
        else if (access(directory.c_str(), R_OK | X_OK) != 0)
            found.obstacle = directory.string() + ": " + std::strerror(errno);
        else if (stat(directory.c_str(), &info) != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
            found.obstacle = directory.string() + ": others than its owner can write to it";
        else
            found.directories.push_back(directory);
    }
    if (!found.directories.empty()) found.obstacle.clear();
    return found;
}

bool is_uv_safe(const fs::path& cache) {
    const auto directory = uv_in(cache);
    return !find_foreign_below(cache, directory) && is_own_directory(directory);
}

Status make_uv(const fs::path& cache) {
    return make_own(uv_in(cache));
}

OpenFile open_own(const fs::path& file) {
    Fd opened(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    const bool own = opened && fstat(opened.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                     info.st_uid == geteuid() && is_ours_alone(info);
    if (!own) return {};
    return {.path = file, .file = std::make_shared<const Fd>(std::move(opened))};
}

Status write_own(const fs::path& file, std::string_view content) {
    auto written = write_file(file, content);
    if (written && chmod(file.c_str(), 0600) != 0) return fail_errno("cannot write the file", file.string());
    return written;
}

CachePlaces places_in(const fs::path& shared, const Environment& environment) {
    const auto own = own_caches(environment);
    const auto cache_for = [&](const fs::path& directory) {
        const auto foreign = find_foreign_below(shared, directory);
        if (!foreign || own.empty() || own.front() == shared) return shared;
        log::detail(own.front().string() + " is used instead of " + directory.string() + ", because of " +
                    foreign->path + ": " + foreign->why);
        return own.front();
    };
    return {.shared = shared,
            .repodata = cache_for(repodata_in(shared)),
            .images = cache_for(images_in(shared)),
            .uv = cache_for(uv_in(shared)),
            .environments = cache_for(environments_in(shared))};
}

Result<fs::path> cache_directory(const Environment& environment, const Located& configured) {
    const auto chosen = configured.text.empty()
                            ? Located{variable(environment, "CONTAINERIZE_CACHE"), "CONTAINERIZE_CACHE"}
                            : configured;
    if (fs::path given = chosen.text; !given.empty()) {
        if (!given.is_absolute())
            return fail_input("the cache directory is not an absolute path", "it is '" + given.string() + "'",
                              chosen.where);
        if (auto why = make_writable_directory(given); !why.empty())
            return fail_input("the cache directory cannot be used", std::move(why), given.string(),
                              "The path is from " + chosen.where + ".");
        return given;
    }
    std::string reasons;
    const auto is_usable = [&](const fs::path& directory, const std::string& why) {
        if (!why.empty()) reasons += (reasons.empty() ? "" : "; ") + directory.string() + ": " + why;
        return why.empty();
    };
    for (auto& directory : own_caches(environment))
        if (is_usable(directory, make_writable_directory(directory))) return std::move(directory);
    for (const fs::path base :
         {variable(environment, "TMPDIR"), std::string("/var/tmp"), std::string("/tmp")}) {
        if (!base.is_absolute()) continue;
        auto directory = base / ("containerize-cache-" + std::to_string(geteuid()));
        if (is_usable(directory, make_private_directory(directory))) return directory;
    }
    return fail({.what = "there is no usable directory for the cache",
                 .why = std::move(reasons),
                 .hint = "Set CONTAINERIZE_CACHE to a directory of your own."});
}

} // namespace containerize::conda
