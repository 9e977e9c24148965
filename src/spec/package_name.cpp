#include "spec/package_name.h"

#include "core/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace containerize::spec {

namespace {

bool is_alphanumeric(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// pip refuses md5 and sha1, and uv others.
constexpr auto strong_checksums = std::to_array<std::pair<std::string_view, std::size_t>>(
    {{"sha256:", 64}, {"sha384:", 96}, {"sha512:", 128}});

} // namespace

bool is_package_name(std::string_view text) {
    return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
           std::ranges::all_of(text,
                               [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_package_version(std::string_view text) {
    return !text.empty() && is_alphanumeric(text.front()) && std::ranges::all_of(text, [](char c) {
        return is_alphanumeric(c) || std::string_view("-_.+!").find(c) != std::string_view::npos;
    });
}

bool is_strong_checksum(std::string_view text) {
    return std::ranges::any_of(strong_checksums, [text](const auto& one) {
        return text.starts_with(one.first) && is_hex(text.substr(one.first.size()), one.second);
    });
}

std::string only_sha256(const std::vector<std::string>& checksums) {
    constexpr std::string_view kind = "sha256:";
    const bool is_one =
        checksums.size() == 1 && checksums.front().starts_with(kind) && is_strong_checksum(checksums.front());
    return is_one ? checksums.front().substr(kind.size()) : "";
}

} // namespace containerize::spec
