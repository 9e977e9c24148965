// Match specs, which select packages: "numpy >=1.20,<2|3.*", "conda-forge::cuda[build=*12*]".
#pragma once

#include "conda/package_record.h"
#include "conda/version.h"
#include "core/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::conda {

struct MatchSpec {
    std::string name; ///< lower-case; empty or a pattern if the spec is not for a single name
    std::optional<VersionSpec> version;
    std::optional<StringMatch> build;
    std::optional<VersionSpec> build_number; ///< "3", ">=3"
    std::string channel;                     ///< as written before "::" or in brackets; empty: any
    std::string subdir;
    std::string file_name, url, md5, sha256, license, license_family;
    std::vector<std::string> features, track_features;
    std::string text; ///< as written but without credentials, for messages

    /// Compares everything but the channel, which only means something together with the configuration.
    [[nodiscard]] bool matches(const PackageRecord& record) const;
    /// The canonical form that `conda` prints, without credentials.
    [[nodiscard]] std::string to_string() const;
};

/// Whether the name in a spec can match several packages: empty, a glob ("libblas*") or a regular expression
/// ("^lib.*$").
bool is_name_pattern(std::string_view name);

/// Whether the name in a spec selects packages of this name.
bool name_matches(std::string_view wanted, std::string_view name);

/// Splits a package's file name, such as "numpy-1.26.4-py311h64a7726_0.conda". Nothing for other names.
struct FileName {
    std::string name, version, build;
};
std::optional<FileName> parse_file_name(std::string_view file_name);

/// Whether `text` is a subdir of channels: "linux-64", "noarch".
bool is_subdir(std::string_view text);

/// What to do with unknown keys in brackets: refused in specs of users, ignored in those of channels, which
/// may be newer. Conditions, extras and flags (CEP 43 to 45) are always refused.
enum class UnknownKeys { refused, ignored };
/// Parses every documented form, including URLs and paths of packages. The error says which part is wrong;
/// the caller adds file and line.
Result<MatchSpec> parse_match_spec(std::string_view text, UnknownKeys unknown_keys = UnknownKeys::refused);

} // namespace containerize::conda
