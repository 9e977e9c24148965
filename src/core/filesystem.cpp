#include "core/filesystem.h"

#include "core/open_file.h"
#include "core/ownership.h"
#include "core/read_write.h"
#include "core/text.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace containerize {

bool is_ours_alone(const struct stat& info) {
    return is_of(info) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

namespace {

std::string size_text(std::uint64_t bytes) {
    constexpr std::uint64_t mib = 1U << 20U;
    return bytes % mib == 0 ? std::to_string(bytes / mib) + " MiB" : std::to_string(bytes) + " bytes";
}

} // namespace

Result<std::string> read_file(const fs::path& path, std::uint64_t limit) {
    const auto file = TRY(open_regular(path));
    std::string text;
    char buffer[1U << 16U];
    for (;;) {
        const auto got = read_all(file.get(), buffer, sizeof buffer);
        if (got < 0) return fail_errno("cannot read the file", path.string());
        text.append(buffer, static_cast<std::size_t>(got));
        if (text.size() > limit)
            return fail({.what = "cannot read the file",
                         .why = "it is larger than " + size_text(limit),
                         .where = path.string()});
        if (static_cast<std::size_t>(got) < sizeof buffer) return text;
    }
}

Result<std::string> read_input_file(const fs::path& path, std::uint64_t limit) {
    auto content = read_file(path, limit);
    if (!content) content.error().fault = Fault::input;
    return content;
}

namespace {

Status write_and_sync(const fs::path& path, std::string_view content, mode_t mode) {
    Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file) return fail_errno("cannot write the file", path.string());
    if (!write_all(file.get(), content) || fsync(file.get()) != 0)
        return fail_errno("cannot write the file", path.string());
    // NFS and quota errors can come as late as close.
    if (close(file.release()) != 0) return fail_errno("cannot write the file", path.string());
    return {};
}

} // namespace

Status write_file(const fs::path& path, std::string_view content, bool executable) {
    static std::atomic<unsigned> counter{0};
    fs::path temporary = path.parent_path() / ".";
    temporary += path.filename();
    temporary += "." + std::to_string(getpid()) + "-" + std::to_string(counter++);
    // Left by a killed process with the same pid.
    unlink(temporary.c_str());
    Status done =
        write_and_sync(temporary, content, executable ? mode_of_new_directories : mode_of_new_files);
    if (done && rename(temporary.c_str(), path.c_str()) != 0)
        done = fail_errno("cannot write the file", path.string());
    if (!done) {
        unlink(temporary.c_str());
        return done;
    }
    return sync_directory(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

Status make_directory(const fs::path& directory, const char* failure) {
    // std::filesystem would leave it to the umask alone who may write there.
    if (mkdir(directory.c_str(), mode_of_new_directories) == 0) return {};
    const int error_number = errno;
    if (error_number != EEXIST) return fail_errno(failure, directory.string(), error_number);
    if (!quiet::is_directory(directory)) return fail_errno(failure, directory.string(), ENOTDIR);
    return {};
}

Status make_directories(const fs::path& directory, const char* failure) {
    if (quiet::is_directory(directory)) return {};
    if (const auto parent = directory.parent_path(); !parent.empty() && parent != directory)
        TRY(make_directories(parent, failure));
    return make_directory(directory, failure);
}

Status sync_directory(const fs::path& directory) {
    const Fd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return fail_errno("cannot open the directory", directory.string());
    // Some network and FUSE filesystems cannot sync directories.
    if (fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EBADF && errno != ENOSYS)
        return fail_errno("cannot sync the directory", directory.string());
    return {};
}

bool is_below(const fs::path& path, const fs::path& directory) {
    const auto relative = path.lexically_relative(directory);
    return !relative.empty() && *relative.begin() != "..";
}

bool stays_below(const fs::path& path) {
    const bool climbs = std::ranges::find(path, fs::path("..")) != path.end();
    return !path.empty() && path.is_relative() && !climbs && path.native().find('\0') == std::string::npos;
}

std::string clean_path(std::string_view path) {
    if (path.empty() || path.front() == '/' || path.size() > longest_path || path.find('\0') != path.npos)
        return {};
    std::string clean;
    for (const auto part : split(path, '/')) {
        if (part.empty() || part == ".") continue;
        if (part == ".." || part.size() > 255) return {};
        clean += (clean.empty() ? "" : "/") + std::string(part);
    }
    return clean;
}

Result<fs::path> resolve(const fs::path& path) {
    std::error_code problem;
    auto resolved = fs::absolute(path, problem);
    if (!problem) resolved = fs::weakly_canonical(resolved, problem);
    // The user chose this path: it leads through a directory that may not be entered, or a link to itself.
    if (problem)
        return fail_input("cannot resolve the path", problem.message(), path.string(),
                          "Choose a path whose directories you can enter.");
    // "a/b/" is the same as "a/b", but its parent_path() is "a/b" itself.
    if (!resolved.has_filename() && resolved.has_relative_path()) resolved = resolved.parent_path();
    return resolved;
}

namespace {

/// About the filesystem of the path, or of its nearest existing directory. Sets errno if there is none.
std::optional<struct statvfs> filesystem_of(fs::path path) {
    struct statvfs info {};
    while (statvfs(path.empty() ? "." : path.c_str(), &info) != 0) {
        if (errno != ENOENT || path.empty() || path == path.root_path()) return std::nullopt;
        path = path.parent_path();
    }
    return info;
}

} // namespace

bool is_noexec(const fs::path& path) {
    const auto info = filesystem_of(path);
    return info && (info->f_flag & ST_NOEXEC) != 0;
}

Result<std::uint64_t> available_bytes(const fs::path& path) {
    const auto info = filesystem_of(path);
    if (!info) return fail_errno("cannot determine the free space", path.string());
    if (info->f_blocks == 0)
        return fail({.what = "the filesystem does not report its size", .where = path.string()});
    return static_cast<std::uint64_t>(info->f_bavail) * info->f_frsize;
}

} // namespace containerize
