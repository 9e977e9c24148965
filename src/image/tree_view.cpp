#include "image/tree_view.h"

#include "core/entries.h"
#include "core/fd.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::image {

namespace {

constexpr int most_links = 40; // the kernel's limit

/// Takes the first component off a path and returns it.
std::string take_part(std::string& path) {
    const auto start = std::min(path.find_first_not_of('/'), path.size());
    const auto end = std::min(path.find('/', start), path.size());
    std::string part = path.substr(start, end - start);
    path.erase(0, end);
    return part;
}

} // namespace

std::optional<std::string> TreeView::resolve(std::string_view path) const {
    return follow(path, false);
}

std::optional<std::string> TreeView::resolve_missing(std::string_view path) const {
    return follow(path, true);
}

std::optional<std::string> TreeView::resolve_parent(std::string_view path) const {
    const auto directory = resolve_missing(directory_of(path));
    if (!directory) return std::nullopt;
    return (*directory == "/" ? "" : *directory) + "/" + std::string(name_of(path));
}

TreeView::Kind TreeView::own_kind(std::string_view path) const {
    const auto place = resolve_parent(path);
    return place ? kind_of(*place) : Kind::missing;
}

std::optional<std::string> TreeView::follow(std::string_view path, bool may_be_missing) const {
    std::string rest(path), done;
    int links = 0;
    while (!rest.empty()) {
        const auto part = take_part(rest);
        if (part.empty() || part == ".") continue;
        if (part == "..") {
            done.erase(std::min(done.rfind('/'), done.size()));
            continue;
        }
        const auto next = done + "/" + part;
        const auto kind = kind_of(next);
        if (kind == Kind::missing && !may_be_missing) return std::nullopt;
        if (kind != Kind::link) {
            done = next;
            continue;
        }
        if (++links > most_links) return std::nullopt;
        const auto target = target_of(next);
        if (target.starts_with('/')) done.clear();
        rest = target + "/" + rest;
    }
    return done.empty() ? "/" : done;
}

TreeView::Kind TreeView::kind_of(const std::string& path) const {
    const auto mode = mode_of(path);
    if (mode == 0) return Kind::missing;
    if (S_ISREG(mode)) return Kind::file;
    if (S_ISDIR(mode)) return Kind::directory;
    return S_ISLNK(mode) ? Kind::link : Kind::other;
}

bool TreeView::is_program(std::string_view path) const {
    const auto found = resolve(path);
    const auto mode = found ? mode_of(*found) : 0;
    return S_ISREG(mode) && (mode & 0111U) != 0;
}

TreeView::Kind TreeView::kind(std::string_view path) const {
    const auto found = resolve(path);
    return found ? kind_of(*found) : Kind::missing;
}

std::vector<std::string> TreeView::list(std::string_view path) const {
    const auto found = resolve(path);
    if (!found || kind_of(*found) != Kind::directory) return {};
    auto names = names_in(*found);
    std::ranges::sort(names);
    return names;
}

std::string TreeView::read(std::string_view path, std::uint64_t offset, std::size_t size) const {
    const auto found = resolve(path);
    if (!found || kind_of(*found) != Kind::file) return {};
    return bytes_of(*found, offset, size);
}

DirectoryView::DirectoryView(const std::filesystem::path& root) : root_(root.string()) {
    while (root_.ends_with('/'))
        root_.pop_back();
}

mode_t DirectoryView::mode_of(const std::string& path) const {
    struct stat info {};
    return lstat(real(path).c_str(), &info) == 0 ? info.st_mode : 0;
}

std::string DirectoryView::target_of(const std::string& link) const {
    std::error_code failed;
    return std::filesystem::read_symlink(real(link), failed).string();
}

std::vector<std::string> DirectoryView::names_in(const std::string& directory) const {
    const auto names = containerize::names_in(real(directory));
    return {names.begin(), names.end()};
}

std::string DirectoryView::bytes_of(const std::string& file, std::uint64_t offset, std::size_t size) const {
    const Fd opened(open(real(file).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (!opened) return {};
    constexpr std::size_t piece = std::size_t{1} << 20U;
    std::string bytes;
    while (bytes.size() < size) {
        const auto before = bytes.size();
        bytes.resize(std::min(size, before + piece));
        const auto got = pread(opened.get(), bytes.data() + before, bytes.size() - before,
                               static_cast<off_t>(offset + before));
        bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got <= 0) break;
    }
    return bytes;
}

std::string_view name_of(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::string_view directory_of(std::string_view path) {
    const auto slash = path.rfind('/');
    return path.substr(0, slash == 0 ? 1 : slash == std::string_view::npos ? 0 : slash);
}

} // namespace containerize::image
