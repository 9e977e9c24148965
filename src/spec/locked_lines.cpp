#include "spec/locked_lines.h"

#include "conda/version.h"
#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/package_name.h"
#include "util/text_limits.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

bool is_pypi(std::string_view url) {
    return url_host(url) == "pypi.org" || url_host(url) == "pypi.python.org";
}

bool is_control(char c) {
    return std::iscntrl(static_cast<unsigned char>(c)) != 0;
}

/// Beside control characters, what ends a line for Python: U+0085, U+2028 and U+2029.
bool has_line_end_of_unicode(std::string_view text) {
    constexpr auto ends = std::to_array<std::string_view>({"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"});
    return std::ranges::any_of(ends, [text](std::string_view end) { return text.find(end) != text.npos; });
}

} // namespace

std::string shown_requirement(std::string_view text) {
    // In this order: a login that is cut off would not be recognised.
    return "'" + printable_line(without_credentials_within(text).substr(0, 200)) + "'";
}

Status check_requirement_text(std::string_view text, const std::string& where) {
    if (text.size() > longest_line) return too_large(where, "1 MiB for a requirement");
    const auto refuse = [&](const char* why) {
        return fail_input("invalid requirement " + shown_requirement(text), why, where,
                          "Remove it, or write it in a requirements file as pip documents it.");
    };
    if (std::ranges::any_of(text, is_control)) return refuse("it contains a control character");
    if (has_line_end_of_unicode(text))
        return refuse("pip would take a character in it for the end of a line");
    if (text.find("${") != text.npos) return refuse("pip would take ${...} for a variable");
    if (text.find(" #") != text.npos || text.starts_with('#'))
        return refuse("pip would take # for a comment");
    if (text.find(" -") != text.npos || text.starts_with('-'))
        return refuse("pip would take - for an option");
    if (text.ends_with('\\')) return refuse("it ends in a backslash");
    return {};
}

std::string machine_of(std::string_view subdir) {
    const auto name = subdir.substr(subdir.find('-') + 1);
    return name == "64" ? "x86_64" : std::string(name);
}

MarkerFacts facts_for(const LockChoice& choice) {
    MarkerFacts facts{.machine = machine_of(choice.subdir)};
    for (const auto& extra : choice.extras)
        facts.extras.insert(normalised_name(extra));
    for (const auto& group : choice.groups)
        facts.groups.insert(normalised_name(group));
    return facts;
}

Result<Marker> marker_at(std::string_view text, const MarkerFacts& facts, const std::string& where) {
    auto marker = parse_marker(text, facts);
    if (marker) return marker;
    marker.error().what = printable_line(marker.error().what);
    marker.error().where = where;
    return marker;
}

Result<Marker> marker_of(const TomlFile& toml, const toml::table& entry, const MarkerFacts& facts) {
    const auto text = TRY(toml.text(entry, "marker"));
    return marker_at(text, facts, toml.where(entry));
}

Status check_parts(const std::vector<std::string>& chosen, const std::vector<std::string>& has,
                   std::string_view option, const fs::path& file) {
    for (const auto& one : chosen) {
        const bool is_there = std::ranges::any_of(
            has, [&](const std::string& other) { return normalised_name(other) == normalised_name(one); });
        if (is_there) continue;
        const std::string what = option == "--group" ? "group" : "extra";
        return fail_input("this file has no " + what + " '" + printable_line(one) + "'",
                          has.empty() ? "it has none" : "it has " + printable_line(joined(has, ", ")),
                          file.string(),
                          has.empty() ? "Leave out " + std::string(option) + "."
                                      : "Give " + std::string(option) + " one of these.");
    }
    return {};
}

Result<Located> python_versions(std::string_view text, const std::string& where) {
    std::string plain;
    for (const char c : text)
        if (c != ' ') plain += c;
    if (plain.ends_with(',')) plain.pop_back();
    if (plain.empty()) return Located{};
    constexpr std::string_view known = "0123456789.*<>=!~,|abcr";
    if (plain.find_first_not_of(known) != plain.npos || !conda::VersionSpec::parse(plain))
        return fail_input("invalid condition for the version of Python: '" +
                              printable_line(text.substr(0, 100)) + "'",
                          {}, where, "Write it like `>=3.11,<4`.");
    return Located{.text = plain, .where = where};
}

Result<Located> python_versions(const TomlFile& toml, const toml::table& entry) {
    const auto* node = entry.get("requires-python");
    if (node == nullptr) return Located{};
    const auto text = TRY(toml.text(entry, "requires-python"));
    return python_versions(text, toml.where(*node));
}

namespace {

Status check_name(const std::string& name, const std::string& where) {
    if (is_package_name(name)) return {};
    return fail_input("invalid name of a package: '" + printable_line(name.substr(0, 100)) + "'", {}, where,
                      "Lock it again.");
}

} // namespace

Status LockedLines::add_line(const std::string& requirement, const Marker& marker, const std::string& options,
                             const std::string& name, const std::string& where) {
    if (marker.is_never()) return {};
    // pip and uv refuse two lines for a name of which both hold, and say so only then.
    if (marker.is_always() && !always_.insert(normalised_name(name)).second)
        return fail_input(name + " is listed twice", {}, where, "Lock again, or remove one of them.");
    if (converted_.lines.size() == most_packages) return too_large(where, "50,000 packages");
    auto text = requirement + (marker.is_always() ? "" : " ; " + marker.text());
    TRY(check_requirement_text(text, where));
    converted_.lines.push_back({.text = std::move(text) + options, .where = where});
    return {};
}

Status LockedLines::add(const PinnedPackage& package) {
    TRY(check_name(package.name, package.where));
    if (package.marker.is_never()) return {};
    if (!is_package_version(package.version))
        return fail_input("the lock has no usable version for '" + package.name + "'",
                          printable_line(package.version.substr(0, 100)), package.where, "Lock it again.");
    std::set<std::string> checksums;
    for (const auto& one : package.checksums)
        if (is_strong_checksum(one)) checksums.insert(lower(one)); // pip compares the letters
    if (checksums.empty() && !package.checksums.empty())
        return fail_input("the lock has no checksum for '" + package.name + "' that pip can verify",
                          "it has " + printable_line(package.checksums.front().substr(0, 100)), package.where,
                          "Lock it again with checksums of kind sha256.");
    if (checksums.empty()) return refuse_unverifiable(package.name, package.where);
    std::string options;
    for (const auto& one : checksums)
        options += " --hash=" + one;
    return add_line(package.name + "==" + package.version, package.marker, options, package.name,
                    package.where);
}

Status LockedLines::add(const LockedRequirement& package, const Marker& marker, const std::string& where) {
    TRY(check_name(package.name, where));
    if (marker.is_never()) return {};
    const auto text = TRY(requirement_text(package, lock_, where));
    return add_line(text, marker, "", package.name, where);
}

std::string git_location(std::string_view address, std::string_view commit, std::string_view directory) {
    constexpr std::string_view scheme = "git+";
    if (address.starts_with(scheme)) address.remove_prefix(scheme.size());
    auto url = std::string(address);
    const auto at = url.find('@');
    const auto colon = url.find(':');
    const bool is_for_ssh = !is_url(url) && colon != url.npos && at < colon && url.find('/') > colon;
    if (is_for_ssh) url = "ssh://" + url.replace(colon, 1, "/");
    replace_all(url, "#", "%23"); // a fragment would take the place of the commit
    return std::string(scheme) + url + "?rev=" + std::string(commit) +
           (directory.empty() ? "" : "&subdirectory=" + url_encoded(directory));
}

Status LockedLines::add_index(const std::string& url, const std::string& where) {
    if (url.empty() || is_pypi(url)) return {};
    TRY(check_requirement_text(url, where));
    if (!is_url(url) || url.find_first_of(" \"'\\") != url.npos)
        return fail_input("invalid address of an index", {}, where,
                          "Give a URL, such as https://HOST/simple.");
    options_.emplace("--extra-index-url " + url, where);
    return {};
}

Status LockedLines::add_directory(const std::string& path, const std::string& where) {
    const auto full = fs::absolute(lock_.parent_path() / path).lexically_normal();
    TRY(check_requirement_text(full.string(), where));
    std::error_code failed;
    if (!fs::is_directory(full, failed))
        return fail_input(
            "there is no directory '" + printable_line(path) + "'", {}, where,
            "Paths are relative to the lock file. Put the lock file beside the files that it refers to.");
    options_.emplace("--find-links " + shell_quoted(full.string()), where);
    return {};
}

Result<ConvertedFile> LockedLines::finish() {
    if (converted_.lines.empty())
        return fail_input(
            "this lock has no package to install", {}, lock_.string(),
            "If its packages belong to a group or an extra, choose that with --group or --extra.");
    std::vector<Located> lines;
    for (const auto& [option, where] : options_)
        lines.push_back({.text = option, .where = where});
    std::ranges::move(converted_.lines, std::back_inserter(lines));
    converted_.lines = std::move(lines);
    converted_.complete = true;
    return std::move(converted_);
}

} // namespace containerize::spec
