// Conda's versions: their order, and the expressions that select them.
#pragma once

#include "util/error.h"

#include <compare>
#include <memory>
#include <string>
#include <string_view>

namespace containerize::conda {

/// "1!2.0.1rc2+cuda12": epoch, parts, local part; in conda's order, where "1.0" equals "1.0.0" and "dev"
/// comes first.
class Version {
public:
    static Result<Version> parse(std::string_view text);
    [[nodiscard]] const std::string& text() const;
    std::weak_ordering operator<=>(const Version& other) const;
    bool operator==(const Version& other) const;
    /// "1.26.4" starts with "1.26", "1.260" does not.
    [[nodiscard]] bool starts_with(const Version& prefix) const;
};

/// ">=1.20,<2|3.*", "=1.26", "==1.26.4", "~=1.4", "!=1.5", "1.8.*", "*".
class VersionSpec {
public:
    static Result<VersionSpec> parse(std::string_view text);
    [[nodiscard]] bool matches(const Version& version) const;
    [[nodiscard]] const std::string& text() const; ///< normalised
};

} // namespace containerize::conda
