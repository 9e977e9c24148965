#include "pip/sources.h"

#include "core/text.h"
#include "core/url.h"
#include "util/redact.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace containerize::pip {

namespace {

using spec::PipSource;

/// The query stays: the address may name no file without it.
std::string without_login(std::string_view url) {
    url = url.substr(0, url.find('#'));
    const auto scheme = url.find("://");
    if (scheme == url.npos) return std::string(url);
    const auto start = scheme + 3;
    const auto login = url.substr(start, url_login_size(url.substr(start)));
    // git's user on an SSH server is a part of the address.
    const auto kept = url.starts_with("ssh") ? login.substr(0, login.find_first_of(":@")) : "";
    return fmt::format("{}{}{}{}", url.substr(0, start), kept, kept.empty() ? "" : "@",
                       url.substr(start + login.size()));
}

/// Whether it has a query, or more secrets than what redacted() takes for a token of conda: any directory
/// "/t/NAME/".
bool has_secret(std::string_view written) {
    const auto shown = redacted(written); // in all of it, because variables are replaced in URLs only
    const auto before = split(written, '/');
    const auto after = split(shown, '/');
    if (written.find('?') != written.npos || before.size() != after.size()) return true;
    for (std::size_t i = 0; i < before.size(); ++i) {
        const bool is_below_t = i > 0 && before[i - 1] == "t" && after[i] == redaction_mark;
        if (is_below_t ? redacted(before[i]) != before[i] : after[i] != before[i]) return true;
    }
    return false;
}

/// The address, with a mark or ${NAME} in place of each secret.
std::string written_url(const std::string& url) {
    if (url.starts_with("file:")) return url;
    auto written = without_login(url);
    return has_secret(written) ? redacted(written) : written;
}

PipSource::Kind kind_of(const Origin& origin) {
    if (!origin.vcs.empty()) return PipSource::Kind::repository;
    return origin.directory ? PipSource::Kind::directory : PipSource::Kind::archive;
}

} // namespace

PipSource source_of(const Origin& origin) {
    return {.kind = kind_of(origin),
            .url = written_url(origin.url),
            .sha256 = origin.sha256,
            .vcs = origin.vcs,
            .commit = origin.commit,
            .subdirectory = origin.subdirectory,
            .editable = origin.editable};
}

PipSource source_of(const ResolvedPackage& package) {
    const bool is_wheel = package.kind == ResolvedPackage::Kind::wheel;
    if (!package.direct_url.empty() && !is_wheel) return source_of(package.source);
    const auto& url = is_wheel ? package.url : package.source.url;
    PipSource source{.url = written_url(url),
                     .sha256 = is_wheel ? package.sha256 : package.source.sha256,
                     .size = is_wheel ? package.size : 0};
    source.kind = package.direct_url.empty() ? PipSource::Kind::index : PipSource::Kind::archive;
    if (source.kind == PipSource::Kind::archive) return source;
    source.file = file_name_in(url);
    if (!spec::is_lasting(source.url)) source.url.clear(); // an index finds the file by its name
    return source;
}

spec::LockedPackage locked_package(const ResolvedPackage& package) {
    return {.name = package.name, .version = package.version, .source = source_of(package)};
}

std::string requirement_of(const spec::LockedPackage& package) {
    const auto& source = package.source;
    Distribution distribution{.name = package.name, .version = package.version, .metadata = {}, .origin = {}};
    const bool is_direct = source.kind != PipSource::Kind::unknown && source.kind != PipSource::Kind::index;
    if (is_direct)
        distribution.origin = Origin{.url = source.url,
                                     .vcs = source.vcs,
                                     .commit = source.commit,
                                     .subdirectory = source.subdirectory,
                                     .sha256 = source.sha256,
                                     .directory = source.kind == PipSource::Kind::directory,
                                     .editable = source.editable};
    const auto line = requirement_line(distribution);
    return is_direct || source.sha256.empty() ? line : line + " --hash=sha256:" + source.sha256;
}

} // namespace containerize::pip
