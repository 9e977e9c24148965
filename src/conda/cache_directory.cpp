#include "conda/cache_directory.h"

#include "core/filesystem.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::conda {

namespace {

// The functions below return the reason why the directory cannot be used; empty if it can.

std::string why_not_writable(const fs::path& directory) {
    return access(directory.c_str(), W_OK | X_OK) == 0 ? "" : std::strerror(errno);
}

std::string make_writable(const fs::path& directory) {
    std::error_code problem;
    fs::create_directories(directory, problem);
    return problem ? problem.message() : why_not_writable(directory);
}

/// In a directory that everybody can write to, somebody else may have created ours.
std::string make_private(const fs::path& directory) {
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return std::strerror(errno);
    struct stat info {};
    if (lstat(directory.c_str(), &info) != 0) return std::strerror(errno);
    if (!S_ISDIR(info.st_mode)) return "it is not a directory";
    if (info.st_uid != geteuid()) return "it belongs to another user";
    if ((info.st_mode & 077U) != 0) return "other users can access it";
    return why_not_writable(directory);
}

/// Copies the parent's mode and group, and sets the sticky bit: users must not rename others' files.
std::string make_as_above(const fs::path& directory, const struct stat& above) {
    // Created under a temporary name: nobody may see it before it has its final mode.
    std::string name = (directory.parent_path() / ("." + directory.filename().string() + "-XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr) return std::strerror(errno);
    const Fd made(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    mode_t mode = (above.st_mode & 03777U) | S_ISVTX;
    struct stat info {};
    if (!made || fstat(made.get(), &info) != 0) return std::strerror(errno);
    // If the group cannot be copied, its write access must not go to another group.
    if (info.st_gid != above.st_gid && fchown(made.get(), static_cast<uid_t>(-1), above.st_gid) != 0 &&
        (mode & S_IWOTH) == 0)
        mode &= ~(S_IWGRP | S_ISGID);
    if (fchmod(made.get(), mode) == 0 && rename(name.c_str(), directory.c_str()) == 0) return {};
    const auto why = std::strerror(errno);
    rmdir(name.c_str());
    return fs::exists(fs::symlink_status(directory)) ? "" : why; // another build created it first
}

/// Creates a directory that can be written by everybody who can write to its parent.
std::string make_shared(const fs::path& directory) {
    struct stat info {};
    struct stat above {};
    if (lstat(directory.c_str(), &info) != 0) {
        if (auto why = make_writable(directory.parent_path()); !why.empty()) return why;
        if (stat(directory.parent_path().c_str(), &above) != 0) return std::strerror(errno);
        const bool shared = (above.st_mode & (S_IWGRP | S_IWOTH)) != 0;
        if (!shared) return make_writable(directory);
        if (auto why = make_as_above(directory, above); !why.empty()) return why;
        if (lstat(directory.c_str(), &info) != 0) return std::strerror(errno);
    }
    if (S_ISLNK(info.st_mode) && info.st_uid != geteuid() && info.st_uid != 0)
        return "it is a link that belongs to another user";
    return why_not_writable(directory);
}

Status usable(const fs::path& directory, std::string why) {
    if (why.empty()) return {};
    return fail({.what = "cannot use the cache",
                 .why = std::move(why),
                 .where = directory.string(),
                 .hint = "Set CONTAINERIZE_CACHE to another directory."});
}

} // namespace

fs::path packages_in(const fs::path& cache) {
    return cache / "packages";
}

fs::path repodata_in(const fs::path& cache) {
    return cache / "repodata" / std::to_string(geteuid());
}

Status make_packages(const fs::path& cache) {
    return usable(packages_in(cache), make_shared(packages_in(cache)));
}

Status make_repodata(const fs::path& cache) {
    const auto directory = repodata_in(cache);
    auto why = make_shared(directory.parent_path());
    if (why.empty()) why = make_private(directory);
    return usable(directory, std::move(why));
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

Result<fs::path> cache_directory(const Environment& environment, const Located& configured) {
    const auto chosen = configured.text.empty()
                            ? Located{variable(environment, "CONTAINERIZE_CACHE"), "CONTAINERIZE_CACHE"}
                            : configured;
    if (fs::path given = chosen.text; !given.empty()) {
        if (!given.is_absolute())
            return fail_input("the cache directory is not an absolute path", "it is '" + given.string() + "'",
                              chosen.where);
        if (auto why = make_writable(given); !why.empty())
            return fail_input("the cache directory cannot be used", std::move(why), given.string(),
                              "The path is from " + chosen.where + ".");
        return given;
    }
    std::string reasons;
    const auto is_usable = [&](const fs::path& directory, const std::string& why) {
        if (!why.empty()) reasons += (reasons.empty() ? "" : "; ") + directory.string() + ": " + why;
        return why.empty();
    };
    for (const auto& [name, below] :
         {std::pair{Variable("XDG_CACHE_HOME"), "containerize"}, {Variable("HOME"), ".cache/containerize"}})
        if (const fs::path base = variable(environment, name); base.is_absolute())
            if (auto directory = base / below; is_usable(directory, make_writable(directory)))
                return directory;
    for (const fs::path base :
         {variable(environment, "TMPDIR"), std::string("/var/tmp"), std::string("/tmp")}) {
        if (!base.is_absolute()) continue;
        auto directory = base / ("containerize-cache-" + std::to_string(geteuid()));
        if (is_usable(directory, make_private(directory))) return directory;
    }
    return fail({.what = "there is no usable directory for the cache",
                 .why = std::move(reasons),
                 .hint = "Set CONTAINERIZE_CACHE to a directory of your own."});
}

} // namespace containerize::conda
