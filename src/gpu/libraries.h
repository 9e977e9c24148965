// Finds shared libraries in a tree like its dynamic linker.
#pragma once

#include "gpu/tree.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::gpu {

struct CachedLibrary {
    std::string name; ///< "libcuda.so.1"
    std::string path; ///< "/lib/x86_64-linux-gnu/libcuda.so.1"
};

/// Parses ld.so.cache in the format of glibc 2.2 and later ("glibc-ld.so.cache1.1"), also when it follows the
/// older format in the same file, as written by ldconfig before 2.32. Returns nothing if the file is invalid.
std::optional<std::vector<CachedLibrary>> parse_library_cache(std::string_view bytes);

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

} // namespace containerize::gpu
