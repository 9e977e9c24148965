#include "util/url.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace containerize {

namespace {

constexpr std::string_view digits = "0123456789ABCDEF";

/// Where the host (with its user and password) begins; nothing if this is no URL.
std::optional<std::size_t> authority_start(std::string_view text) {
    const auto end = text.find("://");
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    const auto scheme = text.substr(0, end);
    const bool letters = std::ranges::all_of(
        scheme, [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; });
    if (!letters || std::isalpha(static_cast<unsigned char>(scheme.front())) == 0) return std::nullopt;
    return end + 3;
}

std::size_t authority_end(std::string_view url, std::size_t start) {
    return std::min(url.find_first_of("/?#", start), url.size());
}

/// "/t/TOKEN" in `path` as conda's servers have it, and what follows it.
std::string without_token(std::string_view path) {
    const auto is_token = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
    for (auto at = path.find("/t/"); at != std::string_view::npos; at = path.find("/t/", at + 1)) {
        const auto rest = path.substr(at + 3);
        const auto length = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_token) - rest.begin());
        if (length == 0 || (length < rest.size() && rest[length] != '/')) continue;
        return std::string(path.substr(0, at)) + std::string(rest.substr(length));
    }
    return std::string(path);
}

std::optional<char> hex_byte(std::string_view text) {
    if (text.size() < 2) return std::nullopt;
    const auto digit = [](char c) {
        return digits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    };
    const auto high = digit(text[0]);
    const auto low = digit(text[1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    return static_cast<char>(high << 4U | low);
}

} // namespace

bool is_url(std::string_view text) {
    return authority_start(text).has_value();
}

std::string without_credentials(std::string_view url) {
    const auto start = authority_start(url);
    if (!start || url.starts_with("file:")) return std::string(url);
    const auto end = authority_end(url, *start);
    auto authority = url.substr(*start, end - *start);
    // The last one: an '@' in a password should be encoded, but is not always.
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
    const auto path = url.substr(end, std::min(url.find_first_of("?#", end), url.size()) - end);
    return std::string(url.substr(0, *start)) + std::string(authority) + without_token(path);
}

std::string url_host(std::string_view url) {
    const auto start = authority_start(url);
    if (!start) return {};
    auto authority = url.substr(*start, authority_end(url, *start) - *start);
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
    std::string host(authority);
    std::ranges::transform(host, host.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return host;
}

std::string url_encoded(std::string_view url) {
    std::string encoded;
    for (const char c : url) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte < 0x7f && std::string_view("\"<>\\^`{|}").find(c) == std::string_view::npos) {
            encoded += c;
        } else {
            encoded += '%';
            encoded += digits[byte >> 4U];
            encoded += digits[byte & 15U];
        }
    }
    return encoded;
}

std::string url_decoded(std::string_view text) {
    std::string decoded;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto byte = text[at] == '%' ? hex_byte(text.substr(at + 1)) : std::nullopt;
        decoded += byte.value_or(text[at]);
        if (byte) at += 2;
    }
    return decoded;
}

std::string file_url_path(std::string_view url) {
    if (!url.starts_with("file://")) return {};
    url.remove_prefix(7);
    // "file://localhost/x" names the same as "file:///x".
    if (url.starts_with("localhost/")) url.remove_prefix(9);
    return url_decoded(url);
}

std::string file_url(std::string_view absolute_path) {
    std::string encoded;
    for (const char c : absolute_path)
        encoded += c == '%' ? "%25" : c == '#' ? "%23" : c == '?' ? "%3F" : url_encoded({&c, 1});
    return "file://" + encoded;
}

} // namespace containerize
