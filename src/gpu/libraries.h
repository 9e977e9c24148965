// Which shared libraries a tree has, as its dynamic linker would find them.
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

/// The entries of an ld.so.cache, by the format of glibc 2.2 and later ("glibc-ld.so.cache1.1"), also where
/// it stands behind the older one, as ldconfig wrote it before 2.32. Nothing if it is no such file, or
/// broken.
std::optional<std::vector<CachedLibrary>> parse_library_cache(std::string_view bytes);

class Libraries {
public:
    /// Of /etc/ld.so.cache, and of the directories in which libraries usually are: a cache can be absent, or
    /// older than the last driver. `more` are further directories.
    explicit Libraries(const TreeView& tree, const std::vector<std::string>& more = {});

    /// The path of the first library of this name that was built for `machine`; 0 means any machine.
    [[nodiscard]] std::optional<std::string> find(const std::string& name, std::uint16_t machine) const;
    /// All paths, links and all, by the name.
    [[nodiscard]] const std::multimap<std::string, std::string>& all() const { return paths_; }

private:
    const TreeView& tree_;
    std::multimap<std::string, std::string> paths_; ///< those of one name in the order of the search
};

} // namespace containerize::gpu
