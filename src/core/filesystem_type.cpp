#include "core/filesystem.h"
#include "core/filesystem_magic.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <sys/sysmacros.h>
#include <sys/vfs.h>

namespace containerize {

namespace {

/// mountinfo escapes blanks and backslashes in paths as \ooo.
std::string unescape(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size()) {
            plain +=
                static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

/// The type of the innermost mount over `path`, by the mount table: FUSE filesystems share one magic number,
/// and have names only there.
std::string mounted_type(const fs::path& path) {
    std::string best_type = "unknown";
    std::size_t best_length = 0;
    for (const auto& mounted : mounted_filesystems())
        // The later of two mounts on one point hides the earlier.
        if (mounted.point.size() >= best_length && is_below(path, mounted.point)) {
            best_length = mounted.point.size();
            best_type = mounted.type;
        }
    return best_type;
}

} // namespace

std::vector<Mounted> mounted_filesystems(const fs::path& proc) {
    std::ifstream file(proc / "self/mountinfo");
    std::vector<Mounted> found;
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields(line);
        std::string skipped, root, point, field, type, source, options;
        unsigned major_number = 0, minor_number = 0;
        fields >> skipped >> skipped >> major_number;
        fields.ignore(1); // ':'
        fields >> minor_number >> root >> point;
        while (fields >> field && field != "-") {
        }
        fields >> type >> source >> options;
        found.push_back({.root = unescape(root),
                         .point = unescape(point),
                         .type = type,
                         .source = unescape(source),
                         .options = options,
                         .device = makedev(major_number, minor_number)});
    }
    return found;
}

std::string filesystem_type(const fs::path& path) {
    auto resolved = resolve(path);
    auto existing = resolved ? *resolved : path;
    struct statfs info {};
    while (statfs(existing.c_str(), &info) != 0) {
        if (existing == existing.parent_path()) return "unknown";
        existing = existing.parent_path();
    }
    const auto known = type_of_magic(static_cast<std::uint32_t>(info.f_type));
    return known.empty() ? mounted_type(existing) : std::string(known);
}

std::vector<std::string> mount_points_below(const fs::path& path) {
    std::vector<std::string> points;
    for (auto& mounted : mounted_filesystems())
        if (is_below(mounted.point, path)) points.push_back(std::move(mounted.point));
    return points;
}

bool is_network_filesystem(std::string_view type) {
    if (std::ranges::find(network_filesystems, type) != network_filesystems.end()) return true;
    // A FUSE filesystem that is not known to be local (sshfs, glusterfs, s3fs, ...) is taken for a network's.
    constexpr std::array local = {"fuse.fuse-overlayfs", "fuse.squashfuse", "fuse.squashfuse_ll",
                                  own_fuse_type};
    return type.starts_with("fuse.") && std::ranges::find(local, type) == local.end();
}

} // namespace containerize
