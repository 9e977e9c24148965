#include "cli/version_text.h"

#include "cli/exec.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/version.h"

#include <array>
#include <string_view>
#include <utility>

#include <archive.h>
#include <bzlib.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <nettle/version.h>
#include <simdjson.h>
#include <solv/solvversion.h>
#include <spdlog/version.h>
#include <zstd.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

/// A file and not a constant, so that a new commit neither compiles nor links anything.
std::string commit() {
    const auto text = read_file(installation_tree() / "share/containerize/commit").value_or("");
    return std::string(trimmed(text));
}

std::string version_of_curl() {
    const auto& about = *curl_version_info(CURLVERSION_NOW);
    return about.ssl_version == nullptr ? about.version
                                        : fmt::format("{} ({})", about.version, about.ssl_version);
}

/// Without the name at the start: "libarchive 3.6.2".
std::string version_of_archive() {
    const std::string_view text = archive_version_string();
    return std::string(text.substr(text.find(' ') + 1));
}

/// Without the date: "1.0.8".
std::string version_of_bzip2() {
    return std::string(split(BZ2_bzlibVersion(), ',').front());
}

template<class... Numbers>
std::string dotted(Numbers... numbers) {
    return joined(std::array{std::to_string(numbers)...}, ".");
}

} // namespace

std::string version_text() {
    std::string text = std::string("containerize ") + this_version;
    if (const auto from = commit(); !from.empty()) text += " (" + from + ")";
    // Those of shared libraries are asked of the library, others are what was compiled.
    const auto libraries = std::to_array<std::pair<const char*, std::string>>({
        {"bzip2", version_of_bzip2()},
        {"CLI11", CLI11_VERSION},
        {"fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
        {"libarchive", version_of_archive()},
        {"libcurl", version_of_curl()},
        {"libsolv", solv_version},
        {"libsquashfs", SQUASHFS_TOOLS_NG_VERSION},
        {"nettle", dotted(nettle_version_major(), nettle_version_minor())},
        {"nlohmann-json",
         dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
        {"simdjson", SIMDJSON_STRINGIFY(SIMDJSON_VERSION)},
        {"spdlog", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
        {"yaml-cpp", YAML_CPP_PACKAGE_VERSION},
        {"zstd", ZSTD_versionString()},
    });
    for (const auto& [name, version] : libraries)
        text += fmt::format("\n  {:14} {}", name, version);
    return text;
}

} // namespace containerize::cli
