#include "pip/pylock.h"

#include "core/url.h"
#include "core/version.h"
#include "util/redact.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::pip {

namespace {

using nlohmann::json;

/// Without the characters that differ, JSON's strings are TOML's, too: a URL has no control characters.
std::string quoted(const std::string& text) {
    return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// A line with a key, or nothing if there is no value.
std::string line(std::string_view key, const std::string& value) {
    return value.empty() ? "" : fmt::format("{} = {}\n", key, quoted(value));
}

std::string location(const std::string& url) {
    if (url.starts_with("file:")) return line("path", file_url_path(url));
    return line("url", redacted(without_credentials_within(url)));
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

} // namespace

std::string pylock_text(const std::vector<ResolvedPackage>& packages, const ChosenFor& chosen_for) {
    const auto minor =
        chosen_for.python.substr(0, chosen_for.python.find('.', chosen_for.python.find('.') + 1));
    std::string text = fmt::format(R"(lock-version = "1.0"
environments = ["sys_platform == 'linux' and platform_machine == '{}'"]
requires-python = "=={}.*"
created-by = "containerize"
)",
                                   chosen_for.machine, minor);
    for (const auto& package : packages) {
        text += "\n[[packages]]\n" + line("name", normalised_name(package.name)) +
                line("version", package.version);
        text += package.kind == ResolvedPackage::Kind::wheel ? wheel(package) : source(package);
    }
    return text;
}

} // namespace containerize::pip
