// What a user or a package asks for: "numpy >=1.20,<2|3.*", "conda-forge::cuda[build=*12*]".
#pragma once

#include "conda/package_record.h"
#include "conda/version.h"
#include "util/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::conda {

/// A text that must be matched whole: exact, a glob ("py311*"), or a regular expression ("^py3.*$").
class StringMatch {
public:
    static Result<StringMatch> parse(std::string_view text);
    [[nodiscard]] bool matches(std::string_view text) const;
    [[nodiscard]] bool exact() const;
    [[nodiscard]] const std::string& text() const;
};

struct MatchSpec {
    std::string name; ///< lower-case; empty or a pattern where the user asked for no one name
    std::optional<VersionSpec> version;
    std::optional<StringMatch> build;
    std::optional<VersionSpec> build_number; ///< "3", ">=3"
    std::string channel;                     ///< as written before "::", or in brackets; empty if any
    std::string subdir;
    std::string file_name, url, md5, sha256, license, license_family;
    std::vector<std::string> features, track_features;
    bool optional = false;
    std::string text; ///< as written

    /// Everything but the channel, which only the configuration can compare.
    [[nodiscard]] bool matches(const PackageRecord& record) const;
    /// Canonical form, as `conda` prints it.
    [[nodiscard]] std::string to_string() const;
};

/// Every form that conda documents, URLs and paths of packages among them. The error says which part is wrong
/// and why; the caller adds file and line.
Result<MatchSpec> parse_match_spec(std::string_view text);

} // namespace containerize::conda
