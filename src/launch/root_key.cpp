#include "launch/root_key.h"

#include "core/fd.h"
#include "core/variables.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

namespace containerize::launch {

namespace {

/// The host's programs, libraries and settings, of which a base has its own.
constexpr std::array<std::string_view, 12> of_base = {"bin",    "boot", "etc",  "lib",  "lib32", "lib64",
                                                      "libx32", "opt",  "root", "sbin", "usr",   "var"};

} // namespace

std::string recorded_root(const std::string& prefix) {
    const Fd file(open((prefix + "/" + root_file).c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 128> text;
    const auto size = file ? read(file.get(), text.data(), text.size()) : 0;
    return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

bool is_of_base(std::string_view top_level_name) {
    return std::ranges::find(of_base, top_level_name) != of_base.end();
}

std::string root_key(const std::string& prefix) {
    const std::string name = recorded_root(prefix);
    const bool is_image = name.starts_with(image_root) || name.starts_with(isolated_root);
    std::string text = name;
    for (const auto& variable : root_variables) {
        if (variable.for_images_only && !is_image) continue;
        const char* value = value_of(variable.name);
        if (value == nullptr || (variable.binds && *value == '\0')) continue;
        text.append(1, '\0').append(variable.name.name()).append("=").append(value);
    }
    if (text.empty()) return {};
    // A root that would not show the prefix by itself is assembled for this installation only.
    const bool out_of_sight =
        is_image && is_of_base(std::string_view(prefix).substr(1, prefix.find('/', 1) - 1));
    if (name.starts_with(isolated_root) || out_of_sight) text.append(1, '\0').append(prefix);
    return short_hash(text);
}

std::string short_hash(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325ULL; // FNV-1a
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    return digits;
}

} // namespace containerize::launch
