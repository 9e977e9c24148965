#include "elf/library_cache.h"

#include <cstdint>
#include <cstring>
#include <utility>

namespace containerize::elf {

namespace {

// Limits sharing of bytes, by which a small file could fill memory.
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
        const auto low = number_at(*cache, entry + 16), high = number_at(*cache, entry + 20); // processors
        if (!key || !value || !low || !high) return std::nullopt;
        if (*low != 0 || *high != 0) continue;
        auto name = string_at(*cache, *key), path = string_at(*cache, *value);
        if (!name || !path) return std::nullopt;
        string_bytes += name->size() + path->size();
        if (string_bytes > most_sharing * cache->size()) return std::nullopt;
        libraries.push_back({.name = std::move(*name), .path = std::move(*path)});
    }
    return libraries;
}

} // namespace containerize::elf
