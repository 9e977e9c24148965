#include "image/tree_view.h"

#include <cerrno>
#include <deque>
#include <vector>

#include <sys/stat.h>

namespace containerize::image {

namespace {

/// As many as the kernel follows.
constexpr int most_links = 40;

TreeView::Type type_of(mode_t mode) {
    if (S_ISDIR(mode)) return TreeView::Type::directory;
    if (S_ISREG(mode)) return TreeView::Type::file;
    if (S_ISLNK(mode)) return TreeView::Type::link;
    return TreeView::Type::other;
}

std::string_view without_slashes(std::string_view path) {
    while (path.starts_with('/'))
        path.remove_prefix(1);
    while (path.ends_with('/'))
        path.remove_suffix(1);
    return path;
}

void put_in_front(std::deque<std::string>& parts, std::string_view path) {
    std::vector<std::string> words;
    for (const auto& part : std::filesystem::path(path).relative_path())
        if (!part.empty() && part != ".") words.push_back(part.string());
    parts.insert(parts.begin(), words.begin(), words.end());
}

std::string parent_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

} // namespace

std::string TreeView::resolve(std::string_view path) const {
    std::deque<std::string> rest;
    put_in_front(rest, path);
    std::string done;
    for (int links = 0; !rest.empty();) {
        const std::string name = rest.front();
        rest.pop_front();
        if (name == "..") {
            done = parent_of(done);
            continue;
        }
        const std::string next = done + "/" + name;
        if (type(next) != Type::link) {
            done = next;
            continue;
        }
        if (++links > most_links) return {};
        const std::string target = link_target(next);
        if (target.starts_with('/')) done.clear();
        put_in_front(rest, target);
    }
    return done.empty() ? "/" : done;
}

TreeView::Type LayersView::type(std::string_view path) const {
    const auto found = layers_.find(without_slashes(path));
    if (!found) return Type::missing;
    const auto inode = layers_.inode(*found);
    return inode ? type_of(inode->mode) : Type::missing;
}

std::string LayersView::link_target(std::string_view path) const {
    const auto found = layers_.find(without_slashes(path));
    if (!found) return {};
    return layers_.read_link(*found).value_or(std::string());
}

std::filesystem::path DirectoryView::whole(std::string_view path) const {
    return root_ / without_slashes(path);
}

TreeView::Type DirectoryView::type(std::string_view path) const {
    struct stat info {};
    return lstat(whole(path).c_str(), &info) == 0 ? type_of(info.st_mode) : Type::missing;
}

std::string DirectoryView::link_target(std::string_view path) const {
    std::error_code failed;
    const auto target = std::filesystem::read_symlink(whole(path), failed);
    return failed ? std::string() : target.string();
}

} // namespace containerize::image
