#include "gpu/c_library.h"

#include "gpu/libraries.h"

#include <string_view>

namespace containerize::gpu {

std::string glibc_version(const TreeView& tree) {
    // Symbol versions are not sufficient: not every release adds one.
    constexpr std::string_view before = " release version ";
    constexpr std::size_t largest = std::size_t{64} << 20U;
    const auto path = Libraries(tree).find("libc.so.6", 0);
    const auto content = path ? tree.text(*path, largest) : std::string();
    const auto banner = content.find("GNU C Library");
    const auto found = banner == content.npos ? content.npos : content.find(before, banner);
    if (found == content.npos) return {};
    const auto start = found + before.size();
    auto end = content.find_first_not_of("0123456789.", start);
    if (end == content.npos) end = content.size();
    auto version = content.substr(start, end - start);
    while (version.ends_with('.'))
        version.pop_back();
    return version;
}

} // namespace containerize::gpu
