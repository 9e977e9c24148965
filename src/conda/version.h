// Conda's versions: their order, and specs that match them.
#pragma once

#include "core/error.h"

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace containerize::conda {

/// A version such as "1!2.0.1rc2+cuda12", with epoch, parts and local part. In conda's order "1.0" equals
/// "1.0.0", "dev" sorts first and "post" last.
class Version {
public:
    static Result<Version> parse(std::string_view text);
    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] std::weak_ordering operator<=>(const Version& other) const;
    [[nodiscard]] bool operator==(const Version& other) const { return (*this <=> other) == 0; }
    /// "1.26.4" starts with "1.26", but "1.260" does not; "1.0rc1" starts with "1.0r".
    [[nodiscard]] bool starts_with(const Version& prefix) const;

private:
    /// A run of digits, or of other characters, which sort before numbers.
    struct Token {
        std::uint64_t number = 0;
        std::string word; ///< empty for a number
        [[nodiscard]] std::weak_ordering operator<=>(const Token& other) const;
        [[nodiscard]] bool operator==(const Token& other) const { return (*this <=> other) == 0; }
    };
    using Part = std::vector<Token>;
    using Parts = std::vector<Part>;

    static Result<Parts> split(std::string_view text);
    static std::weak_ordering compare(const Parts& one, const Parts& other);

    std::string text_;
    Parts parts_; ///< starting with the epoch
    Parts local_;
};

/// ">=1.20,<2|3.*", "=1.26", "==1.26.4", "~=1.4", "!=1.5", "1.8.*", "*", "^1\.[0-9]+$".
class VersionSpec {
public:
    static Result<VersionSpec> parse(std::string_view text);
    [[nodiscard]] bool matches(const Version& version) const;
    [[nodiscard]] const std::string& text() const { return text_; } ///< without blanks

    struct Condition; ///< an implementation detail

private:
    std::string text_;
    std::shared_ptr<const Condition> condition_;
};

/// Matches a whole text: exactly, by a glob ("py311*") or by a regular expression ("^py3.*$").
class StringMatch {
public:
    static Result<StringMatch> parse(std::string_view text);
    [[nodiscard]] bool matches(std::string_view text) const;
    [[nodiscard]] bool exact() const { return kind_ == Kind::exact; }
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    enum class Kind { exact, glob, expression };
    Kind kind_ = Kind::exact;
    std::string text_;
    std::shared_ptr<const re2::RE2> expression_;
};

} // namespace containerize::conda
