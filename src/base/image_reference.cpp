#include "base/image_reference.h"

#include "core/filesystem.h"

#include <algorithm>
#include <utility>

namespace containerize::base {

namespace {

constexpr std::string_view forms = "Give docker://NAME[:TAG], oci:DIRECTORY[:TAG], oci-archive:FILE, "
                                   "docker-archive:FILE, a .sif or .sqfs file, or\n"
                                   "the directory of a root filesystem.";

std::unexpected<Error> bad(std::string_view text, std::string why) {
    return fail_input("invalid base image: '" + std::string(text) + "'", std::move(why), {},
                      std::string(forms));
}

bool is_lower_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_alphanumeric(char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/// Lower-case letters and digits, with '.', '_' and '-' between them; components are separated by '/'.
bool is_repository(std::string_view text) {
    constexpr std::size_t longest = 255;
    if (text.empty() || text.size() > longest) return false;
    char before = '/';
    for (const char c : text) {
        const bool separator = c == '.' || c == '_' || c == '-' || c == '/';
        if (!separator && !is_lower_or_digit(c)) return false;
        if (separator && (before == '/' || (c == '/' && !is_lower_or_digit(before)))) return false;
        before = c;
    }
    return is_lower_or_digit(before);
}

bool is_tag(std::string_view text) {
    constexpr std::size_t longest = 128;
    return !text.empty() && text.size() <= longest && text.front() != '.' && text.front() != '-' &&
           std::ranges::all_of(text,
                               [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_host(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return is_alphanumeric(c) || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
    });
}

/// The first component is a host if it cannot be part of a name on Docker Hub.
bool names_host(std::string_view first) {
    return first == "localhost" || first.find_first_of(".:[") != first.npos;
}

Result<Reference> parse_registry(std::string_view whole, std::string_view rest) {
    Reference reference;
    if (const auto at = rest.find('@'); at != rest.npos) {
        reference.digest = rest.substr(at + 1);
        if (!is_digest(reference.digest))
            return bad(whole, "its digest is not sha256: followed by 64 digits");
        rest = rest.substr(0, at);
    }
    const auto slash = rest.find('/');
    if (slash != rest.npos && names_host(rest.substr(0, slash))) {
        reference.registry = rest.substr(0, slash);
        rest = rest.substr(slash + 1);
    } else {
        reference.registry = "docker.io";
    }
    if (reference.registry == "index.docker.io" || reference.registry == "registry-1.docker.io")
        reference.registry = "docker.io";
    if (!is_host(reference.registry))
        return bad(whole, "'" + reference.registry + "' is not a valid host name");
    if (const auto colon = rest.rfind(':'); colon != rest.npos) {
        reference.tag = rest.substr(colon + 1);
        if (!is_tag(reference.tag)) return bad(whole, "'" + reference.tag + "' is not a valid tag");
        rest = rest.substr(0, colon);
    }
    if (!is_repository(rest))
        return bad(whole, "'" + std::string(rest) +
                              "' is not a valid name: names consist of lower-case letters and digits");
    reference.repository = rest;
    if (reference.registry == "docker.io" && rest.find('/') == rest.npos)
        reference.repository = "library/" + reference.repository;
    if (reference.tag.empty() && reference.digest.empty()) reference.tag = "latest";
    reference.text = "docker://" + reference.registry + "/" + reference.repository;
    if (!reference.tag.empty()) reference.text += ":" + reference.tag;
    if (!reference.digest.empty()) reference.text += "@" + reference.digest;
    return reference;
}

/// If there is a file of that whole name, there is no tag; otherwise the tag is what follows the first colon.
Result<Reference> parse_local(std::string_view whole, std::string_view scheme, Reference::Kind kind) {
    std::string_view rest = whole.substr(scheme.size());
    Reference reference;
    reference.kind = kind;
    std::error_code ignored;
    if (!scheme.empty() && !fs::exists(rest, ignored)) {
        const auto colon = std::min(rest.find(':'), rest.size());
        reference.tag = rest.substr(std::min(colon + 1, rest.size()));
        rest = rest.substr(0, colon);
    }
    const auto status = fs::status(rest, ignored);
    if (rest.empty() || !fs::exists(status)) return bad(whole, "there is no '" + std::string(rest) + "'");
    const bool wants_directory = kind == Reference::Kind::oci_directory || kind == Reference::Kind::directory;
    if (!(wants_directory ? fs::is_directory(status) : fs::is_regular_file(status)))
        return bad(whole,
                   "'" + std::string(rest) + (wants_directory ? "' is not a directory" : "' is not a file"));
    reference.path = TRY(resolve(rest));
    reference.text = std::string(scheme) + reference.path.string();
    if (!reference.tag.empty()) reference.text += ":" + reference.tag;
    return reference;
}

} // namespace

bool is_digest(std::string_view text) {
    constexpr std::string_view algorithm = "sha256:";
    constexpr std::size_t digits = 64;
    return text.starts_with(algorithm) && text.size() == algorithm.size() + digits &&
           text.find_first_not_of("0123456789abcdef", algorithm.size()) == text.npos;
}

Result<Reference> parse_reference(std::string_view text) {
    using Kind = Reference::Kind;
    if (text.find_first_of(" \t\n\r") != text.npos && !text.starts_with('/'))
        return bad(text, "it contains spaces");
    if (constexpr std::string_view docker = "docker://"; text.starts_with(docker))
        return parse_registry(text, text.substr(docker.size()));
    constexpr std::pair<std::string_view, Kind> schemes[] = {{"oci-archive:", Kind::oci_archive},
                                                             {"docker-archive:", Kind::docker_archive},
                                                             {"oci:", Kind::oci_directory}};
    for (const auto& [scheme, kind] : schemes)
        if (text.starts_with(scheme)) return parse_local(text, scheme, kind);
    std::error_code ignored;
    if (fs::is_directory(text, ignored)) return parse_local(text, {}, Kind::directory);
    if (text.ends_with(".sif")) return parse_local(text, {}, Kind::sif);
    for (const std::string_view ending : {".sqfs", ".squashfs", ".sfs", ".img"})
        if (text.ends_with(ending)) return parse_local(text, {}, Kind::squashfs);
    return bad(text, fs::exists(text, ignored) ? "its name does not end in .sif or .sqfs"
                                               : "there is no such file");
}

} // namespace containerize::base
