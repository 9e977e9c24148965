// Finds shared libraries in a tree like its dynamic linker.
#pragma once

#include "gpu/host_tree.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::gpu {

/// Whether the file's name is that of the dynamic linker or of a library of the C library or compiler. A
/// container must use its own set, because these belong together.
bool is_system_library(std::string_view name);

class Libraries {
public:
    /// Reads /etc/ld.so.cache and then the usual library directories and `more`, since the cache may be
    /// missing or older than the driver.
    explicit Libraries(const TreeView& tree, const std::vector<std::string>& more = {});

    /// Returns the path of the first library of this name that was built for `machine` (0: any).
    [[nodiscard]] std::optional<std::string> find(const std::string& name, std::uint16_t machine) const;
    /// All paths by name, including symlinks.
    [[nodiscard]] const std::multimap<std::string, std::string>& all() const { return paths_; }

private:
    const TreeView& tree_;
    std::multimap<std::string, std::string> paths_; ///< in search order for each name
};

/// The version that glibc states in its own file, such as "2.41"; empty without glibc.
std::string glibc_version(const TreeView& tree);

} // namespace containerize::gpu
