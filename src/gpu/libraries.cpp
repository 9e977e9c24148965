#include "gpu/libraries.h"

#include "gpu/elf.h"

#include <array>
#include <cstring>

namespace containerize::gpu {

namespace {

// Real caches are below 1 MiB. Limits sharing of bytes, by which a small file could fill memory.
constexpr std::size_t largest_cache = 4U << 20U;
constexpr std::size_t most_sharing = 8;

// The formats are defined in glibc's elf/cache.c and sysdeps/generic/dl-cache.h.
constexpr std::string_view old_magic{"ld.so-1.7.0\0", 12};
constexpr std::string_view magic = "glibc-ld.so.cache1.1";
constexpr std::size_t old_entry_bytes = 12, old_header_bytes = 16;
constexpr std::size_t header_bytes = 48, entry_bytes = 24;

std::optional<std::uint32_t> number_at(std::string_view bytes, std::size_t offset) {
    std::uint32_t number = 0;
    if (offset > bytes.size() || bytes.size() - offset < sizeof number) return std::nullopt;
    std::memcpy(&number, bytes.data() + offset, sizeof number);
    return number;
}

std::optional<std::string> string_at(std::string_view bytes, std::size_t offset) {
    const auto end = bytes.find('\0', offset);
    if (end == std::string_view::npos) return std::nullopt;
    return std::string(bytes.substr(offset, end - offset));
}

std::optional<std::string_view> without_old_format(std::string_view bytes) {
    if (!bytes.starts_with(old_magic)) return bytes;
    const auto count = number_at(bytes, old_magic.size());
    if (!count) return std::nullopt;
    const std::size_t end = (old_header_bytes + std::size_t{*count} * old_entry_bytes + 7) / 8 * 8;
    return end < bytes.size() ? std::optional(bytes.substr(end)) : std::nullopt;
}

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

std::optional<std::vector<CachedLibrary>> parse_library_cache(std::string_view bytes) {
    const auto cache = without_old_format(bytes);
    if (!cache || !cache->starts_with(magic)) return std::nullopt;
    const auto count = number_at(*cache, magic.size());
    if (!count || *count > (cache->size() - magic.size()) / entry_bytes) return std::nullopt;
    std::vector<CachedLibrary> libraries;
    std::size_t string_bytes = 0;
    for (std::size_t i = 0; i < *count; ++i) {
        const auto entry = header_bytes + i * entry_bytes;
        const auto key = number_at(*cache, entry + 4), value = number_at(*cache, entry + 8);
        if (!key || !value) return std::nullopt;
        auto name = string_at(*cache, *key), path = string_at(*cache, *value);
        if (!name || !path) return std::nullopt;
        string_bytes += name->size() + path->size();
        if (string_bytes > most_sharing * cache->size()) return std::nullopt;
        libraries.push_back({.name = std::move(*name), .path = std::move(*path)});
    }
    return libraries;
}

Libraries::Libraries(const TreeView& tree, const std::vector<std::string>& more) : tree_(tree) {
    if (const auto cached = parse_library_cache(tree.text("/etc/ld.so.cache", largest_cache)))
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
        const auto elf = read_elf(tree_, found->second);
        if (elf && (machine == 0 || elf->machine == machine)) return found->second;
    }
    return std::nullopt;
}

} // namespace containerize::gpu
