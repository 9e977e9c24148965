#include "pip/distributions.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "util/json.h"
#include "wheel/dist_info.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <nlohmann/json.hpp>

namespace containerize::pip {

namespace {

using nlohmann::json;

/// The metadata file of an entry in site-packages; empty for other entries.
fs::path metadata_file(const fs::path& entry) {
    const auto extension = entry.extension();
    std::error_code failed;
    if (extension == ".dist-info") return entry / "METADATA";
    if (extension == ".egg-info") return fs::is_directory(entry, failed) ? entry / "PKG-INFO" : entry;
    return {};
}

std::optional<Distribution> distribution_of(std::string_view metadata) {
    auto read = wheel::parse_metadata(metadata);
    if (read.name.empty() || read.version.empty()) return std::nullopt;
    return Distribution{
        .name = std::move(read.name), .version = std::move(read.version), .metadata = {}, .origin = {}};
}

std::optional<Origin> read_origin(const fs::path& directory) {
    const auto text = read_file(directory / "direct_url.json");
    return text ? parse_origin(*text) : std::nullopt;
}

/// Reads an .egg-link of `setup.py develop`, which names the project's directory, where the metadata is.
std::optional<Distribution> read_link(const fs::path& link) {
    const auto text = read_file(link);
    if (!text) return std::nullopt;
    const fs::path project = text->substr(0, text->find('\n'));
    std::error_code failed;
    for (const auto& entry : entries_in(project, failed)) {
        if (entry.path().extension() != ".egg-info") continue;
        const auto metadata = read_file(entry.path() / "PKG-INFO");
        auto distribution = metadata ? distribution_of(*metadata) : std::nullopt;
        if (!distribution || normalised_name(distribution->name) != normalised_name(link.stem().string()))
            continue;
        distribution->metadata = link.filename().string();
        distribution->origin = {.url = file_url(project.string()), .directory = true, .editable = true};
        return distribution;
    }
    return std::nullopt;
}

/// Removes the digits at the start of `text` and returns them without leading zeros.
std::string take_number(std::string_view& text) {
    const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
    auto digits = text.substr(0, end);
    text.remove_prefix(end);
    while (digits.size() > 1 && digits.front() == '0')
        digits.remove_prefix(1);
    return std::string(digits);
}

/// PEP 440's normal form of a phase: "rc" for "c" and "preview".
std::string canonical_phase(std::string_view word) {
    for (const auto& [written, canonical] :
         {std::pair("alpha", "a"), std::pair("beta", "b"), std::pair("c", "rc"), std::pair("pre", "rc"),
          std::pair("preview", "rc"), std::pair("rev", "post"), std::pair("r", "post")})
        if (word == written) return canonical;
    return std::string(word);
}

/// "+5.cu121" for "+05_cu121"; empty for "".
std::string normalised_local(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const bool separates = text[0] == '-' || text[0] == '_';
        result += separates ? '.' : text[0];
        text.remove_prefix(1);
        const auto part = text.substr(0, text.find_first_of("-_."));
        const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
        if (is_number)
            result += take_number(text);
        else
            result += part;
        text.remove_prefix(is_number ? 0 : part.size());
    }
    return result;
}

} // namespace

std::optional<Origin> parse_origin(std::string_view text) {
    const auto root = parse_json_quietly(text);
    if (!root.is_object()) return std::nullopt;
    const auto repository = object_of(root, "vcs_info");
    return Origin{.url = text_of(root, "url"),
                  .vcs = text_of(repository, "vcs"),
                  .commit = text_of(repository, "commit_id"),
                  .subdirectory = text_of(root, "subdirectory"),
                  .sha256 = text_of(object_of(object_of(root, "archive_info"), "hashes"), "sha256"),
                  .directory = root.contains("dir_info"),
                  .editable = object_of(root, "dir_info").value("editable", json()) == true};
}

std::string requirement_line(const Distribution& distribution) {
    const auto& name = distribution.name;
    if (!distribution.origin) return name + "==" + distribution.version;
    const auto& origin = *distribution.origin;
    if (origin.editable) return "-e " + origin.url;
    std::string url = origin.url;
    // pip rejects "name @ git+file:///...", whose URL has no host.
    const bool unnamed = !origin.vcs.empty() && url.starts_with("file:");
    if (!origin.vcs.empty()) url = origin.vcs + "+" + url + "@" + origin.commit;
    std::string fragment;
    for (const auto& [key, value] :
         {std::pair("egg", unnamed ? name : ""), std::pair("sha256", origin.sha256),
          std::pair("subdirectory", origin.subdirectory)})
        if (!value.empty()) fragment += (fragment.empty() ? "#" : "&") + (std::string(key) + "=" + value);
    return (unnamed ? "" : name + " @ ") + url + fragment;
}

std::string normalised_version(std::string_view text) {
    const auto lowered = lower(text);
    std::string_view rest = lowered;
    if (rest.starts_with('v')) rest.remove_prefix(1);
    const auto plus = std::min(rest.find('+'), rest.size());
    auto local = normalised_local(rest.substr(plus));
    rest = rest.substr(0, plus);
    std::string result;
    if (const auto epoch = rest.find('!'); epoch != rest.npos) {
        const auto number = take_number(rest);
        if (number != "0") result = number + "!";
        rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
    }
    std::string release;
    for (std::size_t kept = 0;;) {
        const auto number = take_number(rest);
        release += (release.empty() ? "" : ".") + number;
        if (number != "0" || kept == 0) kept = release.size(); // trailing zeros do not matter
        const bool goes_on =
            rest.size() > 1 && rest[0] == '.' && std::isdigit(static_cast<unsigned char>(rest[1])) != 0;
        if (!goes_on) {
            release.resize(kept);
            break;
        }
        rest.remove_prefix(1);
    }
    result += release;
    while (!rest.empty()) {
        const bool dash = rest.starts_with('-');
        rest.remove_prefix(std::min(rest.find_first_not_of(".-_"), rest.size()));
        const auto end = std::min(rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), rest.size());
        const auto phase = canonical_phase(rest.substr(0, end));
        rest.remove_prefix(end);
        rest.remove_prefix(std::min(rest.find_first_not_of(".-_"), rest.size()));
        const auto number = take_number(rest);
        if (phase.empty() && number.empty()) break;
        result += (phase.empty() && dash ? "post" : phase) + (number.empty() ? "0" : number);
        if (end == 0 && number.empty()) break;
    }
    return result + std::string(rest) + local;
}

std::vector<Distribution> read_distributions(const fs::path& site_packages) {
    std::vector<Distribution> distributions;
    std::error_code missing;
    for (const auto& entry : entries_in(site_packages, missing)) {
        if (entry.path().extension() == ".egg-link")
            if (auto linked = read_link(entry.path())) distributions.push_back(std::move(*linked));
        const auto file = metadata_file(entry.path());
        if (file.empty()) continue;
        const auto text = read_file(file);
        if (!text) continue;
        auto distribution = distribution_of(*text);
        if (!distribution) continue;
        distribution->metadata = file.lexically_relative(site_packages).string();
        std::error_code failed;
        distribution->requested = fs::exists(file.parent_path() / "REQUESTED", failed);
        distribution->origin = read_origin(file.parent_path());
        distributions.push_back(std::move(*distribution));
    }
    std::ranges::sort(distributions, {}, [](const auto& one) { return normalised_name(one.name); });
    return distributions;
}

} // namespace containerize::pip
