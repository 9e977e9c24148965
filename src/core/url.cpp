#include "core/url.h"

#include "core/text.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace containerize {

namespace {

constexpr std::string_view digits = "0123456789ABCDEF";
/// How far a login is searched, so that a very long text does not take very long.
constexpr std::size_t longest_login = 4096;

bool is_of_scheme(unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
}

/// Where the authority (user, password and host) begins; nullopt if this is no URL.
std::optional<std::size_t> authority_start(std::string_view text) {
    const auto end = text.find("://");
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    const auto scheme = text.substr(0, end);
    if (!std::ranges::all_of(scheme, is_of_scheme) ||
        std::isalpha(static_cast<unsigned char>(scheme.front())) == 0)
        return std::nullopt;
    return end + 3;
}

std::size_t authority_end(std::string_view url, std::size_t start) {
    return std::min(url.find_first_of("/?#", start), url.size());
}

/// Where the host begins, after "user:password@".
std::size_t host_start(std::string_view url, std::size_t start) {
    return start + url_login_size(url.substr(start));
}

/// `path` without its "/t/TOKEN". At the beginning, where conda servers have it, any text counts as a token.
/// All are removed, so that a second call changes nothing.
std::string without_token(std::string_view path) {
    while (path.starts_with("/t/") && path.size() > 3 && path[3] != '/')
        path.remove_prefix(std::min(path.find('/', 3), path.size()));
    const auto is_token = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
    std::string result;
    for (std::size_t at = 0; (at = path.find("/t/", at)) != path.npos;) {
        const auto rest = path.substr(at + 3);
        const auto length = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_token) - rest.begin());
        if (length == 0 || (length < rest.size() && rest[length] != '/')) {
            ++at;
            continue;
        }
        result += path.substr(0, at);
        path = rest.substr(length);
        at = 0;
    }
    return result + std::string(path);
}

/// "ssh://user:password@host" -> "ssh://user@host": the user name is no secret, and is needed.
std::string without_password(std::string_view url) {
    const auto start = url.find("://") + 3;
    const auto login = url.substr(start, url_login_size(url.substr(start)));
    const auto colon = login.find(':');
    if (colon == std::string_view::npos) return std::string(url);
    return std::string(url.substr(0, start + colon)) + std::string(url.substr(start + login.size() - 1));
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

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// How much what follows an '@' looks like a host.
enum class HostKind {
    none,
    word, ///< "gitlab", but also a branch or a tag
    full, ///< has a domain or a port, or is an IP address
};

/// "[fe80::1%eth0]:8443"
bool is_bracketed_address(std::string_view host) {
    const auto end = host.find(']');
    if (!host.starts_with('[') || end == host.npos) return false;
    const auto is_of_address = [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view(":.%-_~").find(static_cast<char>(c)) != std::string_view::npos;
    };
    const auto port = host.substr(end + 1);
    return std::ranges::all_of(host.substr(1, end - 1), is_of_address) &&
           (port.empty() || (port.starts_with(':') && is_number(port.substr(1))));
}

HostKind kind_of_host(std::string_view rest) {
    const auto host = rest.substr(0, authority_end(rest, 0));
    if (host.starts_with('[')) return is_bracketed_address(host) ? HostKind::full : HostKind::none;
    const auto name = host.substr(0, host.find(':'));
    const bool plain = std::ranges::all_of(
        name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
    if (name.empty() || !plain) return HostKind::none;
    if (name.size() < host.size())
        return is_number(host.substr(name.size() + 1)) ? HostKind::full : HostKind::none;
    const auto domain = name.rfind('.');
    const bool is_address = std::ranges::count(name, '.') == 3;
    const bool is_version = domain != name.npos && is_number(name.substr(domain + 1)) && !is_address;
    return name == "localhost" || (domain != name.npos && !is_version) ? HostKind::full : HostKind::word;
}

/// In a URL with a password, whether the host is `later` and not `first`: the password then has an unencoded
/// '@' or '/'. Otherwise the later '@' is part of the path: "https://me:pass@host/repository@v1".
bool is_rather_host(std::string_view later, std::string_view first) {
    const auto of_first = kind_of_host(first);
    if (of_first == HostKind::none || kind_of_host(later) > of_first) return true;
    return kind_of_host(later) == of_first && later.find('/') != later.npos;
}

} // namespace

std::size_t url_login_size(std::string_view rest) {
    const auto authority = rest.substr(0, authority_end(rest, 0));
    const auto at = authority.rfind('@'); // the last one: an '@' in a password may be unencoded
    const auto first = at == authority.npos ? 0 : at + 1;
    const bool may_have_password = authority.find(':') != authority.npos && !is_bracketed_address(authority);
    if (!may_have_password) return first;
    // So may a slash: what looks like the host, or its port, may belong to the password. The last host in
    // this URL counts.
    rest = rest.substr(0, std::min(rest.find("://"), longest_login));
    for (auto last = rest.rfind('@'); last != rest.npos && last >= first; last = rest.rfind('@', last - 1)) {
        if (is_rather_host(rest.substr(last + 1), rest.substr(first))) return last + 1;
        if (last == 0) break;
    }
    return first;
}

bool is_url(std::string_view text) {
    return authority_start(text).has_value();
}

std::string without_credentials(std::string_view url) {
    const auto start = authority_start(url);
    if (!start || url.starts_with("file:")) return std::string(url);
    const auto host = host_start(url, *start);
    const auto host_end = authority_end(url, host);
    const auto path =
        url.substr(host_end, std::min(url.find_first_of("?#", host_end), url.size()) - host_end);
    return std::string(url.substr(0, *start)) + std::string(url.substr(host, host_end - host)) +
           without_token(path);
}

std::string without_credentials_within(std::string_view line) {
    std::string result;
    while (true) {
        const auto mark = line.find("://");
        if (mark == std::string_view::npos) return result + std::string(line);
        const auto before = line.substr(0, mark);
        auto start = before.size();
        while (start > 0 && is_of_scheme(static_cast<unsigned char>(before[start - 1])))
            --start;
        // "-ihttps://...": the option's letter now looks like part of the scheme; its dash does not.
        while (start < mark && std::isalpha(static_cast<unsigned char>(before[start])) == 0)
            ++start;
        const auto word = line.substr(0, line.find_first_of(" \t'\"", mark));
        const auto end = std::min(word.find('#', host_start(word, mark + 3)), word.size());
        const auto url = line.substr(start, end - start);
        result += line.substr(0, start);
        result += before.ends_with("ssh") ? without_password(url) : without_credentials(url);
        line.remove_prefix(end);
    }
}

std::string url_host(std::string_view url) {
    const auto start = authority_start(url);
    if (!start) return {};
    const auto first = host_start(url, *start);
    return lower(url.substr(first, authority_end(url, first) - first));
}

std::string_view without_end_slash(std::string_view url) {
    while (url.size() > 1 && url.ends_with('/'))
        url.remove_suffix(1);
    return url;
}

bool is_place_of(std::string_view place, std::string_view url) {
    const auto start = authority_start(url);
    if (!start || place.empty()) return false;
    const auto rest = is_url(place) ? url : url.substr(*start);
    if (rest.starts_with(place) && (rest.size() == place.size() || rest[place.size()] == '/')) return true;
    if (is_url(place) || place.find('/') != std::string_view::npos) return false;
    auto host = url_host(url);
    if (const auto port = host.rfind(':');
        port != std::string::npos && host.find(']', port) == std::string::npos)
        host.resize(port);
    if (!place.starts_with("*.")) return host == place;
    const auto domain = place.substr(2);
    return !domain.empty() && (host == domain || host.ends_with("." + std::string(domain)));
}

std::string percent_encoded(std::string_view text, std::string_view kept, std::string_view digits) {
    std::string encoded;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_plain = byte < 0x80 && (std::isalnum(byte) != 0 ||
                                              std::string_view("-_.~").find(c) != std::string_view::npos);
        encoded += is_plain || kept.find(c) != std::string_view::npos
                       ? std::string(1, c)
                       : std::string{'%', digits[byte >> 4U], digits[byte & 15U]};
    }
    return encoded;
}

std::string url_encoded(std::string_view url) {
    return percent_encoded(url, "!#$%&'()*+,/:;=?@[]");
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
    return "file://" + percent_encoded(absolute_path, "!$&'()*+,/:;=@[]");
}

} // namespace containerize
