#include "gpu/libraries.h"

#include "elf/library_cache.h"
#include "elf/read_elf.h"

#include <algorithm>
#include <array>

namespace containerize::gpu {

namespace {

constexpr std::array<const char*, 9> usual_directories = {"/usr/lib64",
                                                          "/usr/lib/x86_64-linux-gnu",
                                                          "/usr/lib/aarch64-linux-gnu",
                                                          "/lib64",
                                                          "/lib/x86_64-linux-gnu",
                                                          "/lib/aarch64-linux-gnu",
                                                          "/usr/local/lib",
                                                          "/usr/lib",
                                                          "/lib"};

} // namespace

bool is_system_library(std::string_view name) {
    static constexpr std::array<std::string_view, 21> stems = {
        "libc",        "libm",         "libmvec",           "libpthread",
        "libdl",       "librt",        "libutil",           "libresolv",
        "libanl",      "libnsl",       "libthread_db",      "libBrokenLocale",
        "libcrypt",    "libstdc++",    "libgcc_s",          "libSegFault",
        "libmemusage", "libpcprofile", "libc_malloc_debug", "libgomp",
        "libatomic"};
    if (name.starts_with("ld-") || name.starts_with("ld.so") || name.starts_with("ld64") ||
        name.starts_with("libnss_") || name.starts_with("libc.musl"))
        return true;
    // "libc.so.6", and "libc-2.31.so", as its file was called before 2.34.
    auto stem = name.substr(0, name.find(".so"));
    const auto dash = stem.rfind('-');
    if (dash != std::string_view::npos &&
        stem.find_first_not_of("0123456789.", dash + 1) == std::string_view::npos)
        stem = stem.substr(0, dash);
    return std::ranges::find(stems, stem) != stems.end();
}

Libraries::Libraries(const TreeView& tree, const std::vector<std::string>& more) : tree_(tree) {
    if (const auto cached =
            elf::parse_library_cache(tree.text("/etc/ld.so.cache", elf::largest_library_cache)))
        for (const auto& library : *cached)
            paths_.emplace(library.name, library.path);
    const auto add = [this](const std::string& directory) {
        for (const auto& name : tree_.list(directory))
            if (name.starts_with("lib") && name.find(".so") != std::string::npos)
                paths_.emplace(name, directory + "/" + name);
    };
    for (const char* directory : usual_directories)
        add(directory);
    for (const auto& directory : more)
        add(directory);
}

std::optional<std::string> Libraries::find(const std::string& name, std::uint16_t machine) const {
    const auto [first, last] = paths_.equal_range(name);
    for (auto found = first; found != last; ++found) {
        const auto elf = elf::read_elf(tree_, found->second);
        if (elf && (machine == 0 || elf->machine == machine)) return found->second;
    }
    return std::nullopt;
}

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
    auto version = content.substr(start, content.find_first_not_of("0123456789.", start) - start);
    while (version.ends_with('.'))
        version.pop_back();
    return version;
}

} // namespace containerize::gpu
