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
    std::string text; ///< as written, for messages: without credentials

    /// Everything but the channel, which only the configuration can compare.
    [[nodiscard]] bool matches(const PackageRecord& record) const;
    /// Canonical form, as `conda` prints it, without credentials.
    [[nodiscard]] std::string to_string() const;
};

/// Whether the name of a spec can stand for several: it is empty, a glob ("libblas*") or a regular expression
/// ("^lib.*$").
bool is_name_pattern(std::string_view name);

/// Takes a package's file name apart: "numpy-1.26.4-py311h64a7726_0.conda". Nothing if it is none.
struct FileName {
    std::string name, version, build;
};
std::optional<FileName> parse_file_name(std::string_view file_name);

/// Whether `text` names a platform as channels do: "linux-64", "noarch".
bool is_subdir(std::string_view text);

/// Every form that conda documents, URLs and paths of packages among them. The error says which part is wrong
/// and why; the caller adds file and line.
/// Keys in brackets that nobody knows are mistakes where a person wrote them; channels may have newer ones.
enum class UnknownKeys { refused, ignored };
Result<MatchSpec> parse_match_spec(std::string_view text, UnknownKeys unknown_keys = UnknownKeys::refused);

} // namespace containerize::conda
