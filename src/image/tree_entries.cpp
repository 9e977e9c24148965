#include "image/tree_entries.h"

#include "core/entries.h"
#include "image/layers.h"

#include <algorithm>
#include <climits>
#include <map>
#include <utility>

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize::image {

namespace {

namespace fs = std::filesystem;

std::vector<std::pair<std::string, std::string>> user_xattrs(const std::string& path) {
    std::vector<std::pair<std::string, std::string>> found;
    const auto size = llistxattr(path.c_str(), nullptr, 0);
    if (size <= 0) return found; // none, or the filesystem has no such attributes
    std::string names(static_cast<std::size_t>(size), '\0');
    const auto got = llistxattr(path.c_str(), names.data(), names.size());
    if (got <= 0) return found;
    names.resize(static_cast<std::size_t>(got));
    for (std::size_t start = 0; start < names.size();) {
        const std::string name = names.c_str() + start;
        start += name.size() + 1;
        if (!name.starts_with("user.") || name.starts_with(overlay_xattrs) ||
            name.starts_with(fuse_overlay_xattrs))
            continue;
        std::string value(65536, '\0');
        const auto length = lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
        if (length < 0) continue;
        value.resize(static_cast<std::size_t>(length));
        found.emplace_back(name, std::move(value));
    }
    std::ranges::sort(found);
    return found;
}

bool is_opaque(const std::string& directory) {
    char value = 0;
    return lgetxattr(directory.c_str(), std::string(opaque_xattr).c_str(), &value, 1) == 1 && value == 'y';
}

Attributes attributes_of(const std::string& path, const struct stat& info, mode_t umask_bits) {
    return {.mode = mode_for_sharing(info.st_mode, umask_bits),
            .mtime = static_cast<std::uint32_t>(std::clamp<time_t>(info.st_mtime, 0, 0xFFFFFFFF)),
            .xattrs = user_xattrs(path)};
}

class TreeWalk {
public:
    TreeWalk(TreeEntries& tree, mode_t umask_bits) : tree_(tree), umask_(umask_bits) {}

    // Depth first, each directory sorted by the bytes of the names.
    Status walk(const std::string& relative) {
        const std::string directory =
            relative.empty() ? tree_.root.string() : (tree_.root / relative).string();
        std::error_code failed;
        const auto names = names_in(directory, failed);
        if (failed) return fail_errno("cannot read a directory to pack it", directory, failed.value());
        for (const auto& name : names)
            TRY(visit(relative.empty() ? name : relative + "/" + name));
        return {};
    }

private:
    Status visit(const std::string& relative) {
        const std::string path = (tree_.root / relative).string();
        struct stat info {};
        if (lstat(path.c_str(), &info) != 0) return fail_errno("cannot examine a file to pack it", path);
        TreeEntry entry;
        entry.path = relative;
        entry.type = info.st_mode & S_IFMT;
        entry.changed = info.st_ctim;
        entry.inode = info.st_ino;
        entry.attributes = attributes_of(path, info, umask_);
        if (S_ISLNK(info.st_mode)) {
            entry.attributes.mode = 0777;
            entry.target.resize(PATH_MAX); // on the heap: this function recurses, once for each level
            const auto size = readlink(path.c_str(), entry.target.data(), entry.target.size());
            if (size <= 0) return fail_errno("cannot read a link to pack it", path);
            entry.target.resize(static_cast<std::size_t>(size));
            entry.target.shrink_to_fit();
        } else if (S_ISREG(info.st_mode)) {
            entry.size = static_cast<std::uint64_t>(info.st_size);
            if (info.st_nlink > 1) {
                const auto [first, is_new] =
                    first_names_.emplace(std::pair(info.st_dev, info.st_ino), tree_.entries.size());
                if (!is_new) entry.original = first->second;
            }
        } else if (S_ISDIR(info.st_mode)) {
            entry.covers = is_opaque(path);
        } else if (S_ISCHR(info.st_mode) && info.st_rdev == 0) {
            entry.covers = true;
        } else {
            tree_.left_out.push_back(relative);
            return {};
        }
        tree_.entries.push_back(std::move(entry));
        return S_ISDIR(info.st_mode) ? walk(relative) : Status();
    }

    TreeEntries& tree_;
    mode_t umask_;
    std::map<std::pair<dev_t, ino_t>, std::size_t> first_names_;
};

} // namespace

mode_t mode_for_sharing(mode_t mode, mode_t umask_bits) {
    const mode_t read = 0444;
    const mode_t execute = S_ISDIR(mode) || (mode & 0111U) != 0 ? 0111 : 0;
    const mode_t write = mode & 0200U;
    return (read | execute | write) & ~(umask_bits & 0077U);
}

Result<TreeEntries> list_tree(const fs::path& root, mode_t umask_bits) {
    struct stat info {};
    if (stat(root.c_str(), &info) != 0) return fail_errno("cannot pack", root.string());
    if (!S_ISDIR(info.st_mode)) return fail_errno("cannot pack", root.string(), ENOTDIR);
    TreeEntries tree{.root = root, .attributes_of_root = attributes_of(root.string(), info, umask_bits)};
    TRY(TreeWalk(tree, umask_bits).walk({}));
    return tree;
}

} // namespace containerize::image
