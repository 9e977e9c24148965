#include "gpu/c_library.h"

#include "gpu/elf.h"
#include "gpu/libraries.h"
#include "gpu/version.h"

namespace containerize::gpu {

std::string newest_version(const std::set<std::string>& versions, std::string_view prefix) {
    std::string found;
    for (const auto& version : versions)
        if (version.starts_with(prefix) &&
            (found.empty() ||
             compare_versions(version.substr(prefix.size()), found.substr(prefix.size())) > 0))
            found = version;
    return found;
}

std::string glibc_version(const TreeView& tree) {
    constexpr std::string_view prefix = "GLIBC_";
    const auto path = Libraries(tree).find("libc.so.6", 0);
    if (!path) return {};
    const auto elf = read_elf(tree, *path);
    if (!elf) return {};
    // Without those that are no versions: GLIBC_PRIVATE, GLIBC_ABI_DT_RELR.
    std::set<std::string> versions;
    for (const auto& version : elf->defined_versions)
        if (version.starts_with(std::string(prefix) + "2.")) versions.insert(version);
    const auto newest = newest_version(versions, prefix);
    return newest.empty() ? newest : newest.substr(prefix.size());
}

} // namespace containerize::gpu
