#include "pip/pylock.h"

#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "core/version.h"
#include "util/redact.h"
#include "util/user_text.h"

#include <algorithm>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::pip {

namespace {

using nlohmann::json;

/// JSON's strings are TOML's, too, but for DEL.
std::string quoted(const std::string& text) {
    auto result = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    replace_all(result, "\x7F", "\\u007F");
    return result;
}

/// A line with a key, or nothing if there is no value.
std::string line(std::string_view key, const std::string& value) {
    return value.empty() ? "" : fmt::format("{} = {}\n", key, quoted(value));
}

/// The query stays: the address may name no file without it.
std::string without_login(std::string_view url) {
    url = url.substr(0, url.find('#'));
    const auto start = url.find("://") + 3;
    const auto login = url.substr(start, url_login_size(url.substr(start)));
    // git's user on an SSH server is a part of the address.
    const auto kept = url.starts_with("ssh") ? login.substr(0, login.find_first_of(":@")) : "";
    return fmt::format("{}{}{}{}", url.substr(0, start), kept, kept.empty() ? "" : "@",
                       url.substr(start + login.size()));
}

std::string location(const std::string& url) {
    if (url.starts_with("file:")) return line("path", file_url_path(url));
    return line("url", without_login(url));
}

/// Not by redacted() for all of it, which takes any directory "/t/NAME/" for a token of conda.
bool has_secret(std::string_view written) {
    const auto parts = split(written, '/');
    return written.find('?') != written.npos ||
           std::ranges::any_of(parts, [](std::string_view part) { return redacted(part) != part; });
}

/// Nothing else than the address can be written, because that names the file.
Status check_location(const ResolvedPackage& package) {
    const auto& url = package.kind == ResolvedPackage::Kind::wheel ? package.url : package.source.url;
    if (!url.starts_with("file:") && has_secret(without_login(url)))
        return fail_input("the address of " + printable_line(package.name) + " cannot be locked",
                          "it contains a query or a token, which may be secret", redacted(url),
                          "Give an address without it, and keep the login in ~/.netrc.");
    if (!is_utf8(file_url_path(url)) || !is_utf8(file_name_in(url)))
        return fail_input("the address of " + printable_line(package.name) + " cannot be locked",
                          "its decoded path is not UTF-8", redacted(url), "Rename the file.");
    return {};
}

std::string checksum(const std::string& sha256) {
    return sha256.empty() ? "" : fmt::format("hashes = {{ sha256 = {} }}\n", quoted(sha256));
}

std::string wheel(const ResolvedPackage& package) {
    const bool is_direct = !package.direct_url.empty();
    std::string text = is_direct ? "[packages.archive]\n" : "[[packages.wheels]]\n";
    if (!is_direct) text += line("name", file_name_in(package.url));
    text += location(package.url);
    if (package.size > 0) text += fmt::format("size = {}\n", package.size);
    return text + checksum(package.sha256);
}

std::string source(const ResolvedPackage& package) {
    const auto& origin = package.source;
    std::string text;
    if (!origin.vcs.empty())
        text = "[packages.vcs]\n" + line("type", origin.vcs) + location(origin.url) +
               line("commit-id", origin.commit);
    else if (origin.directory)
        text = "[packages.directory]\n" + location(origin.url);
    else if (package.direct_url.empty())
        text = "[packages.sdist]\n" + line("name", file_name_in(origin.url)) + location(origin.url);
    else
        text = "[packages.archive]\n" + location(origin.url);
    return text + line("subdirectory", origin.subdirectory) + checksum(origin.sha256);
}

bool is_source_tree(const ResolvedPackage& package) {
    return package.source.directory || !package.source.vcs.empty();
}

} // namespace

Result<std::string> pylock_text(const std::vector<ResolvedPackage>& packages, const ChosenFor& chosen_for) {
    const auto minor =
        chosen_for.python.substr(0, chosen_for.python.find('.', chosen_for.python.find('.') + 1));
    std::string text = fmt::format(R"(lock-version = "1.0"
environments = ["sys_platform == 'linux' and platform_machine == '{}'"]
requires-python = "=={}.*"
created-by = "containerize"
)",
                                   chosen_for.machine, minor);
    for (const auto& package : packages) {
        TRY(check_location(package));
        text += "\n[[packages]]\n" + line("name", normalised_name(package.name));
        // The version of a source tree may change with its content.
        if (!is_source_tree(package)) text += line("version", package.version);
        text += package.kind == ResolvedPackage::Kind::wheel ? wheel(package) : source(package);
    }
    return text;
}

} // namespace containerize::pip
